"""Each format from a file made here to passages with page and heading; and what is wrong with hostile ones."""

from __future__ import annotations

import io
import json
import os
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.chunk import Chunker
from mindchat.corpus.reading.file_reader import Complaint, Entry, Reading, read_here
from mindchat.corpus.reading.readers import READERS, BaseReader, reader_for
from mindchat.corpus.reading.readers.markdown import find_headings
from mindchat.errors import DocumentError, Interrupted
from mindchat.ports import NEVER, Cancel


def documents(path: Path) -> list[Entry]:
    return [item for item in read_here(path) if isinstance(item, Entry)]


def outline(path: Path) -> list[tuple[str, str, int | None]]:
    """(passage, heading, page) of the one document of a file."""
    (entry,) = documents(path)
    chunks = Chunker(60).split(entry.document.text, entry.chunks)
    return [(entry.document.text[chunk.start : chunk.end], chunk.heading, chunk.page) for chunk in chunks]


# ── files
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def make_pdf(pages: list[str], title: str = "") -> bytes:
    """A PDF with one line of text a page; a page without words holds none."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    for words in pages:
        page = writer.add_blank_page(300, 200)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 100 Td ({words}) Tj ET".encode("latin-1"))
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica", "/Encoding": "/WinAnsiEncoding"}
        fonts = DictionaryObject(
            {NameObject("/F1"): DictionaryObject({NameObject(k): NameObject(v) for k, v in font.items()})}
        )
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        if words:
            page[NameObject("/Contents")] = writer._add_object(stream)
    if title:
        writer.add_metadata({"/Title": title})
        writer.add_outline_item(title="Second part", page_number=1)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def make_docx() -> bytes:
    import docx

    word = docx.Document()
    word.core_properties.title = "The Duchy"
    word.add_heading("Rivers", 1)
    word.add_paragraph("The Thouet flows by.")
    word.add_heading("Bridges", 2)
    table = word.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "name", "Pont Neuf"
    buffer = io.BytesIO()
    word.save(buffer)
    return buffer.getvalue()


def make_xlsx() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    rivers, empty, notes = book.active, book.create_sheet("Empty"), book.create_sheet("Notes")
    assert empty is not None
    rivers.title = "Rivers"
    for row in (
        [],
        ["name", "length", None, "seen"],
        ["Thouet", 142.0, None, datetime(2024, 5, 1)],
        [None, None],
        ["Loire", 1006.5, "long\nest", True],
    ):
        rivers.append(row)
    rivers["A9"] = "=1+1"
    notes["C3"] = "Only a note."
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def make_pptx(title: str = "The Duchy") -> bytes:
    import pptx
    from pptx.util import Inches

    show = pptx.Presentation()
    show.core_properties.title = title
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text, first.placeholders[1].text = "Rivers", "The Thouet flows by.\nThe Loire too."
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    second = show.slides.add_slide(show.slide_layouts[6])
    table = second.shapes.add_table(1, 2, 0, 0, Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "name", "Pont Neuf"
    group = second.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(1), Inches(1)).text_frame.text = "In a group."
    buffer = io.BytesIO()
    show.save(buffer)
    return buffer.getvalue()


def make_zip(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


_NAMES = "urn:oasis:names:tc:opendocument:xmlns:"
ODT = {
    "content.xml": (
        f'<o:document-content xmlns:o="{_NAMES}office:1.0" xmlns:text="{_NAMES}text:1.0"'
        f' xmlns:table="{_NAMES}table:1.0"><o:body><o:text>'
        '<text:h text:outline-level="1">Rivers</text:h><text:p>The<text:s/>Thouet <text:span>flows</text:span>'
        " by.</text:p>"
        "<table:table><table:table-row><table:table-cell><text:p>name</text:p></table:table-cell><table:table-cell><text:p>Loire</text:p>"
        "</table:table-cell></table:table-row></table:table></o:text></o:body></o:document-content>"
    ),
    "meta.xml": (
        f'<o:document-meta xmlns:o="{_NAMES}office:1.0"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><o:meta><dc:title>The'
        " Duchy</dc:title></o:meta></o:document-meta>"
    ),
}
EPUB = {
    "META-INF/container.xml": (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="O/b.opf"/></rootfiles></container>'
    ),
    "O/b.opf": (
        '<package xmlns="http://www.idpf.org/2007/opf"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>A Book</dc:title></metadata><manifest><item'
        ' id="b" href="b%20two.xhtml"/><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/><itemref'
        ' idref="b"/></spine></package>'
    ),
    "O/a.xhtml": "<html><body><h1>One</h1><p>First page.</p></body></html>",
    "O/b two.xhtml": "<html><body><h1>Two</h1><p>Second page.</p></body></html>",
}
HTML = """<!doctype html><html><head><title>The  Duchy</title><style>p{}</style></head><body><nav>Menu</nav><h1>Rivers</h1>
<p>The <b>Thouet</b> flows<br>by &amp; by.</p><script>alert(1)</script><h2>Bridges</h2><ul><li>one</li><li>two</li></ul>
<table><tr><th>name</th><td>Loire</td></tr></table><p hidden>secret</p><pre>a  b
  c</pre></body></html>"""
MAIL = (
    b"From: Ann <ann@example.org>\r\nTo: bob@example.org\r\nSubject: =?utf-8?q?Tr=C3=A9moille?=\r\nMIME-Version:"
    b' 1.0\r\nContent-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/plain;'
    b" charset=iso-8859-1\r\n\r\nIch gr\xfc\xdfe dich.\r\n\r\nZweiter Absatz.\r\n--x\r\nContent-Type:"
    b' application/pdf\r\nContent-Disposition: attachment; filename="deed.pdf"\r\n\r\nJVBERi0=\r\n--x--\r\n'
)
RST = """=========
The Duchy
=========

Rivers
======

The *Thouet* flows by ``code``.

.. include:: /etc/passwd

.. raw:: html

   <b>raw</b>

Bridges
-------

* one
* two
"""


def test_html(tmp_path):
    (tmp_path / "x.html").write_text(HTML)
    assert outline(tmp_path / "x.html") == [
        ("Rivers\n\nThe Thouet flows\nby & by.", "Rivers", None),
        ("Bridges\n\none\n\ntwo\n\nname | Loire\n\na  b\n  c", "Rivers › Bridges", None),
    ]
    assert documents(tmp_path / "x.html")[0].document.title == "The Duchy"


def test_html_believes_its_declared_encoding(tmp_path):
    (tmp_path / "x.htm").write_bytes('<meta charset="windows-1252"><p>Größe – 5 €</p>'.encode("cp1252"))
    assert documents(tmp_path / "x.htm")[0].document.text == "Größe – 5 €"


def test_pdf_has_pages_bookmarks_and_title(tmp_path):
    (tmp_path / "x.pdf").write_bytes(make_pdf(["The Thouet flows.", "Bridges \\(old\\)."], "The Duchy"))
    assert outline(tmp_path / "x.pdf") == [("The Thouet flows.", "", 1), ("Bridges (old).", "Second part", 2)]
    assert documents(tmp_path / "x.pdf")[0].document.title == "The Duchy"


def test_pdf_with_some_empty_pages_says_so(tmp_path):
    (tmp_path / "x.pdf").write_bytes(make_pdf(["Words.", ""]))
    assert [item.reason for item in read_here(tmp_path / "x.pdf") if isinstance(item, Complaint)] == [
        "1 of 2 pages have no text (pictures or scans)"
    ]


def test_docx(tmp_path):
    (tmp_path / "x.docx").write_bytes(make_docx())
    assert outline(tmp_path / "x.docx") == [
        ("Rivers\n\nThe Thouet flows by.", "Rivers", None),
        ("Bridges\n\nname | Pont Neuf", "Rivers › Bridges", None),
    ]
    assert documents(tmp_path / "x.docx")[0].document.title == "The Duchy"


def test_xlsx_rows_name_their_columns_and_sheets_are_headings(tmp_path):
    (tmp_path / "my_rivers.xlsx").write_bytes(make_xlsx())
    (entry,) = documents(tmp_path / "my_rivers.xlsx")
    assert entry.document.title == "my rivers"
    assert entry.document.text.split("\n\n") == [
        "name | length | seen",
        "name: Thouet; length: 142; seen: 2024-05-01",
        "name: Loire; length: 1006.5; long est; seen: True",
        "Only a note.",
    ]
    assert [heading for _, heading, _ in outline(tmp_path / "my_rivers.xlsx")] == ["Rivers", "Notes"]


def test_pptx_slides_are_pages_and_titles_headings(tmp_path):
    (tmp_path / "talk.pptx").write_bytes(make_pptx())
    assert documents(tmp_path / "talk.pptx")[0].document.title == "The Duchy"
    assert outline(tmp_path / "talk.pptx") == [
        ("Rivers\n\nThe Thouet flows by.\n\nThe Loire too.\n\nSay it slowly.", "Rivers", 1),
        ("name | Pont Neuf\n\nIn a group.", "", 2),
    ]


@pytest.mark.parametrize("title", ["PowerPoint Presentation", "PowerPoint-Präsentation", "Untitled", "talk.pptx", ""])
def test_a_title_that_powerpoint_made_up_is_none(tmp_path, title):
    (tmp_path / "my_talk.pptx").write_bytes(make_pptx(title))
    assert documents(tmp_path / "my_talk.pptx")[0].document.title == "my talk"


@pytest.mark.parametrize("suffix", [".xlsx", ".pptx"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1old",
        make_zip({"a.txt": "x"}),
        make_zip({"[Content_Types].xml": "<x"}),
    ],
)
def test_a_broken_or_encrypted_office_file_is_named(tmp_path, suffix, content):
    (tmp_path / f"x{suffix}").write_bytes(content)
    with pytest.raises(DocumentError, match=r"broken|encrypted"):
        documents(tmp_path / f"x{suffix}")


def test_office_files_are_read_in_the_worker(tmp_path):
    for name, content in (("a.xlsx", make_xlsx()), ("b.pptx", make_pptx())):
        (tmp_path / name).write_bytes(content)
        assert not reader_for(tmp_path / name).simple
        with Reading(IndexSection(), NEVER) as reading:
            assert [type(item) for item in reading.read(tmp_path / name)] == [Entry]


def test_odt(tmp_path):
    (tmp_path / "x.odt").write_bytes(make_zip(dict(ODT)))
    assert outline(tmp_path / "x.odt") == [("Rivers\n\nThe Thouet flows by.\n\nname | Loire", "Rivers", None)]
    assert documents(tmp_path / "x.odt")[0].document.title == "The Duchy"


def test_epub_in_spine_order(tmp_path):
    (tmp_path / "x.epub").write_bytes(make_zip(dict(EPUB)))
    assert outline(tmp_path / "x.epub") == [("One\n\nFirst page.", "One", None), ("Two\n\nSecond page.", "Two", None)]
    assert documents(tmp_path / "x.epub")[0].document.title == "A Book"


def test_a_page_that_an_epub_names_many_times_is_read_once(tmp_path):
    book = EPUB["O/b.opf"].replace('<itemref idref="a"/>', '<itemref idref="a"/>' * 100)
    (tmp_path / "x.epub").write_bytes(make_zip({**EPUB, "O/b.opf": book}))
    assert outline(tmp_path / "x.epub") == [("One\n\nFirst page.", "One", None), ("Two\n\nSecond page.", "Two", None)]


def test_rst_neither_includes_nor_runs(tmp_path):
    (tmp_path / "x.rst").write_text(RST)
    text = documents(tmp_path / "x.rst")[0].document.text
    assert "The Thouet flows by code." in text
    assert "root:" not in text
    assert "<b>" not in text
    assert outline(tmp_path / "x.rst")[-1] == ("Bridges\n\none\n\ntwo", "The Duchy › Rivers › Bridges", None)


@pytest.mark.parametrize(
    ("name", "text"),
    [("x.csv", 'name;born\n"Poe; E.";1809\n;\nJoyce;1882\n'), ("x.tsv", "name\tborn\nPoe; E.\t1809\nJoyce\t1882\n")],
)
def test_table_rows_name_their_columns(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert (
        documents(tmp_path / name)[0].document.text
        == "name | born\n\nname: Poe; E.; born: 1809\n\nname: Joyce; born: 1882"
    )


def test_json(tmp_path):
    (tmp_path / "x.json").write_text('[{"name": "Poe", "works": ["Raven", {"year": 1845}], "none": null}, 7]')
    assert documents(tmp_path / "x.json")[0].document.text == "name: Poe\nworks: Raven\nworks.year: 1845\n\n7"


def test_json_lines_that_are_no_corpus(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"name": "Poe"}\n{"name": "Joyce"}\n')
    found = documents(tmp_path / "x.jsonl")
    got = [(entry.document.title, entry.document.text, entry.chunks) for entry in found]
    assert got == [("Poe", "name: Poe", None), ("Joyce", "name: Joyce", None)]


def test_mail_with_encoded_subject_and_attachment(tmp_path):
    (tmp_path / "x.eml").write_bytes(MAIL)
    (entry,) = documents(tmp_path / "x.eml")
    assert entry.document.title == "Trémoille"
    assert "Ich grüße dich.\n\nZweiter Absatz." in entry.document.text
    assert entry.document.text.endswith("Attachments: deed.pdf")


def test_mailbox_gives_each_message_its_own_document(tmp_path):
    message = b"From x@y Thu Jan  1 00:00:00 1970\nFrom: a@b.c\nSubject: %s\n\nbody %s\n\n"
    (tmp_path / "x.mbox").write_bytes(message % (b"one", b"1") + message % (b"two", b"2") + message % (b"one", b"1"))
    found = documents(tmp_path / "x.mbox")
    assert [entry.document.title for entry in found] == ["one", "two"]
    assert all(entry.document.uri == f"{tmp_path / 'x.mbox'}#{entry.document.external_id}" for entry in found)


def test_markdown_headings():
    text = "---\ntitle: X\n---\n# A #\ntext\n```\n# no\n```\nB\n===\n- item\n---\nC\n---\n####### no\n#hash\n"
    start = text.index("# A")
    assert [(level, words) for _, level, words in find_headings(text, start)] == [(1, "A"), (1, "B"), (2, "C")]
    assert all(text[at:].startswith(("# A", "B\n", "C\n")) for at, _, _ in find_headings(text, start))


def test_markdown_title_and_paths(tmp_path):
    (tmp_path / "x.md").write_text("intro\n\n# Top\n\n## Sub\n\ndeep\n\n# Other\n\nend\n")
    assert [heading for _, heading, _ in outline(tmp_path / "x.md")] == ["", "Top", "Top › Sub", "Other"]
    assert documents(tmp_path / "x.md")[0].document.title == "x"
    (tmp_path / "y.md").write_text("intro\n\n# Top\n\n## Sub\n\ndeep\n\n## Other\n\nend\n")
    assert [heading for _, heading, _ in outline(tmp_path / "y.md")] == ["", "", "Sub", "Other"]
    assert documents(tmp_path / "y.md")[0].document.title == "Top"
    (tmp_path / "z.md").write_text("---\ntitle: Front\n---\n# One\na\n# Two\nb\n")
    assert [heading for _, heading, _ in outline(tmp_path / "z.md")] == ["One", "Two"]
    assert documents(tmp_path / "z.md")[0].document.title == "Front"


def test_every_reader_of_the_table_loads_and_knows_its_suffixes():
    for suffix in READERS:
        reader = reader_for(Path(f"x{suffix.upper()}"))
        assert isinstance(reader, BaseReader)
        assert suffix in reader.suffixes
    assert reader_for(Path("x.exe")) is None


# ── hostile files
# ────────────────────────────────────────────────────────────────────────────────────────────────────────


def encrypted_pdf() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(PdfReader(io.BytesIO(make_pdf(["Secret."]))))
    writer.encrypt("password", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def encrypted_zip() -> bytes:
    """The flag alone: no reader gets as far as the cipher."""
    data = bytearray(make_zip(dict(EPUB)))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def lying_zip() -> bytes:
    """Claims to unpack to ten bytes."""
    data = bytearray(make_zip({"content.xml": b"<x>" + b" " * 100_000 + b"</x>"}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (10).to_bytes(4, "little")
    return bytes(data)


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(9))
    + "]><x>&j;</x>"
)
HOSTILE: dict[str, tuple[bytes, str]] = {
    "encrypted.pdf": (b"", "encrypted"),  # made in the test: pypdf is slow to import
    "scanned.pdf": (b"", "no text layer"),
    "cut.pdf": (b"", "broken"),
    "random.pdf": (bytes(range(256)) * 40, "broken"),
    "zero.pdf": (b"", "no pages"),
    "random.docx": (b"PK\x03\x04" + bytes(500), "broken"),
    "password.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "encrypted"),
    "nothing.docx": (make_zip({"a.txt": "x"}), "broken"),
    "bomb.docx": (make_zip({"word/document.xml": bytes(30_000_000)}), "bomb"),
    "bomb.epub": (make_zip({f"{n}": bytes(11_000_000) for n in range(3)}), "bomb"),
    "locked.epub": (encrypted_zip(), "encrypted"),
    "drm.epub": (
        make_zip(EPUB | {"META-INF/encryption.xml": '<e xmlns:c="c"><c:CipherReference URI="O/a.xhtml"/></e>'}),
        "DRM",
    ),
    "lying.odt": (lying_zip(), "broken"),
    "cut.odt": (make_zip(dict(ODT))[:300], "broken"),
    "laughs.odt": (make_zip({"content.xml": LAUGHS}), "broken"),
    "locked.odt": (make_zip(ODT | {"META-INF/manifest.xml": "<m><encryption-data/></m>"}), "encrypted"),
    "empty.html": (b"<html><body><script>x</script></body></html>", "no text"),
    "bad.json": (b'{"a": ', "no JSON"),
    "deep.json": (b"[" * 100_000, "no JSON"),
    "bad.csv": (b"\x00\x01\x02" * 300, "binary"),
    "bad.eml": (b"no header at all\n", "no headers"),
    "bad.mbox": (b"no mailbox\n", "no mailbox"),
    "key.rst": (b"-----BEGIN RSA PRIVATE KEY-----\nabc\n", "private key"),
    "noise.txt": (bytes(range(256)) * 9, "binary"),
    "spaces.txt": (b"  \n \n", "no text"),
}


def write_hostile(folder: Path) -> None:
    made = {
        "encrypted.pdf": encrypted_pdf(),
        "scanned.pdf": make_pdf(["", ""]),
        "cut.pdf": make_pdf(["Words."])[:200],
        "zero.pdf": make_pdf([]),
    }
    for name, (data, _) in HOSTILE.items():
        (folder / name).write_bytes(made.get(name, data))


def test_every_hostile_file_is_named_with_its_reason_and_the_rest_goes_on(library, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    write_hostile(folder)
    (folder / "good.html").write_text(HTML)
    (folder / "good.pdf").write_bytes(make_pdf(["The Thouet flows."]))
    report = library.add(folder)
    reasons = {Path(path).name: reason for path, reason in report.failed}
    assert {name: reason for name, reason in reasons.items() if HOSTILE.get(name, ("", "?"))[1] not in reason} == {}
    assert reasons.keys() == HOSTILE.keys()
    assert [Path(path).name for path in report.added] == ["good.html", "good.pdf"]
    assert set(library.find("Thouet")) == {"good.html", "good.pdf"}


SLOW = """
import time
from mindchat.corpus.reading.readers import BaseReader
class {name}(BaseReader):
    suffixes = frozenset({{".slow"}})
    def read(self, path, *, complain=None):
        {body}
        yield
"""


@pytest.fixture
def odd_reader(tmp_path, monkeypatch):
    """Put a reader with the given body into the table, for this process and its workers."""

    def install(body: str) -> Path:
        (tmp_path / "oddreader.py").write_text(SLOW.format(name="Odd", body=body))
        (tmp_path / "sitecustomize.py").write_text(
            "from mindchat.corpus.reading.readers import READERS\nREADERS.own['.slow'] = 'oddreader:Odd'\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setitem(READERS.own, ".slow", "oddreader:Odd")
        (tmp_path / "x.slow").write_text("x")
        return tmp_path / "x.slow"

    yield install
    import sys

    sys.modules.pop("oddreader", None)


def read_all(path: Path, section: IndexSection, cancel: Cancel = NEVER) -> list[str]:
    """Failures of two files in one context: the odd one, then a good one."""
    failures = []
    good = path.with_name("good.html")
    good.write_text(HTML)
    with Reading(section, cancel) as reading:
        for each in (path, good):
            try:
                list(reading.read(each))
            except DocumentError as error:
                failures.append(error.message)
    return failures


def test_a_reader_that_hangs_is_killed_and_the_next_file_is_read(odd_reader, monkeypatch):
    monkeypatch.setattr("mindchat.corpus.reading.file_reader._START_SECONDS", 1.0)
    path = odd_reader("time.sleep(60)")
    assert read_all(path, IndexSection(read_seconds=1)) == ["x.slow: took longer than index.read_seconds (1 s) to read"]


def test_a_reader_that_dies_is_named_and_the_next_file_is_read(odd_reader):
    path = odd_reader("import os; os.abort()")
    assert read_all(path, IndexSection()) == ["x.slow: made the reader crash (malformed, or too much memory)"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="address space is limited on Linux only")
def test_a_reader_that_eats_memory_is_stopped(odd_reader):
    path = odd_reader("held = bytearray(3_000_000_000)")
    assert read_all(path, IndexSection()) == ["needs too much memory to read"]


def test_a_reader_that_prints_and_raises_is_named(odd_reader):
    path = odd_reader("print('noise'); import os; os.write(1, b'noise'); raise KeyError('odd')")
    assert read_all(path, IndexSection()) == ["cannot be read (KeyError: 'odd')"]


def test_cancel_ends_a_hanging_reader(odd_reader):
    path = odd_reader("time.sleep(60)")
    cancel = Cancel()
    cancel.set()
    with pytest.raises(Interrupted):
        read_all(path, IndexSection(), cancel)


def test_json_of_the_report_is_plain(library, tmp_path):
    (tmp_path / "x.html").write_text(HTML)
    assert json.loads(json.dumps(library.add(tmp_path / "x.html").to_json()))["types"] == {".html": 1}


ENDLESS = {
    "dots.txt": "." * 300_000,
    "quotes.txt": "." + '"' * 300_000 + ".'" * 100_000,
    "blank.txt": "a.\n" + " \n" * 200_000 + " " * 200_000 + "b",
    "spaces.md": "# " + " " * 200_000 + "x\n" + "title: " + " " * 100_000,
    "front.md": "---\ntitle: " + " " * 300_000 + "x\n---\n# A\nwords",
    "hashes.md": "#" + " #" * 100_000 + "\nwords\n" + "`" * 100_000,
    "escapes.txt": "words " + "\x1b]" * 100_000 + "\x9d" * 100_000,
    "openings.txt": "words " + "\x1b[" * 100_000 + "\x1bP" * 100_000,
    "letters.txt": "a" * 300_000 + "\u0301" * 100_000,
    "columns.tsv": "name\t" * 300_000 + "\n" + "word\n" * 5_000,
    "deep.jsonl": '{"id": "1", "text": ' + "[" * 200_000 + "\n" + '{"id": "2", "title": "", "text": "words"}\n',
}


@pytest.mark.parametrize("name", ENDLESS)
def test_no_text_takes_time_beyond_its_length(tmp_path, name):
    import time

    (tmp_path / name).write_text(ENDLESS[name], encoding="utf-8")
    started = time.process_time()
    for entry in documents(tmp_path / name):
        Chunker(160).split(entry.document.text, entry.chunks)
    assert time.process_time() - started < 5


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="file names are bytes on Linux only")
def test_a_file_name_that_is_no_unicode_is_named_and_left_out(library, tmp_path):
    import os

    folder = tmp_path / "docs"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/bad\xff.txt", "wb") as file:
        file.write(b"words")
    (folder / "good.txt").write_text("words")
    report = library.add(folder)
    assert [reason for _, reason in report.skipped] == ["its name is not valid Unicode"]
    json.dumps(report.to_json(), ensure_ascii=False).encode()
    assert library.find("words") == ["good.txt"]


def test_an_endless_line_of_a_corpus_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    from mindchat.corpus.reading.readers.jsonl import MAX_LINE_BYTES, JsonLinesReader

    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id": "1", "title": "A", "text": "one"}\n{"id": "2", "text": "')
        for _ in range(5):
            file.write(b"x" * (MAX_LINE_BYTES // 4))
        file.write(b'"}\n{"id": "3", "title": "C", "text": "three"}\n')
    complaints: list[str] = []
    read = [document.text for document, _ in JsonLinesReader().read(path, complain=complaints.append)]
    assert read == ["one", "three"]
    assert complaints == ["line 2: is longer than 16 MB"]
