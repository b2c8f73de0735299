"""A hundred hostile files and folders, each made from a few lines: what somebody might put into a folder of documents.

Those with a limit of their own are small here; what matters is which way they are wrong.
"""

from __future__ import annotations

import base64
import io
import os
import socket
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], None]
CANARY = "xylophonecanary"
"""Stands in a file outside the folder, which nothing may read."""


def _zip(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _file(name: str, content: str | bytes) -> tuple[str, Make]:
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return name, lambda folder: _put(folder / name, data)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# ── office formats
# ────────────────────────────────────────────────────────────────────────────────────────────────────────

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument'
    '.wordprocessingml.document.main+xml"/></Types>'
)
RELS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1"'
    ' Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"'
    ' Target="{target}"{mode}/></Relationships>'
)
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="{path}"/>'
    "</rootfiles></container>"
)
OPF = '<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'


def _docx(body: str, *, before: str = "", target: str = "word/document.xml", mode: str = "") -> bytes:
    document = f'{before}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    rels = RELS.format(target=target, mode=mode)
    return _zip({"[Content_Types].xml": TYPES, "_rels/.rels": rels, "word/document.xml": document})


def _odt(body: str, before: str = "") -> bytes:
    inner = f"<o:body><o:text>{body}</o:text></o:body>"
    content = f'{before}<o:document-content xmlns:o="{OFFICE}" xmlns:t="{TEXT}">{inner}</o:document-content>'
    return _zip({"content.xml": content})


def _epub(items: str, spine: str, **parts: str) -> bytes:
    opf = OPF.format(items=items, spine=spine)
    return _zip({"META-INF/container.xml": CONTAINER.format(path="b.opf"), "b.opf": opf, **parts})


def _nested_zip(depth: int) -> bytes:
    data = _zip({"content.xml": "x" * 1000})
    for _ in range(depth):
        data = _zip({"content.xml": data, "word/document.xml": data})
    return data


def _laughs(levels: int = 9) -> str:
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(levels))
    return f'<!DOCTYPE x [<!ENTITY e0 "ha">{entities}]>'


def _outside(path: str) -> str:
    return f'<!DOCTYPE x [<!ENTITY e SYSTEM "{path}">]>'


def _pdf(objects: dict[int, str | bytes], root: int = 1) -> bytes:
    out, places = bytearray(b"%PDF-1.7\n"), {}
    for number, body in objects.items():
        places[number] = len(out)
        out += f"{number} 0 obj\n".encode() + (body if isinstance(body, bytes) else body.encode()) + b"\nendobj\n"
    start, size = len(out), max(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{places.get(number, 0):010} 00000 n \n".encode() for number in range(1, size))
    return bytes(out + f"trailer\n<</Root {root} 0 R/Size {size}>>\nstartxref\n{start}\n%%EOF".encode())


def _stream(data: bytes, filters: str) -> bytes:
    return f"<</Length {len(data)}/Filter {filters}>>stream\n".encode() + data + b"\nendstream"


CATALOG, PAGES = "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>"
PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"


def _mail(parts: int) -> bytes:
    out = "Subject: nested\nMIME-Version: 1.0\n"
    for number in range(parts):
        out += f'Content-Type: multipart/mixed; boundary="b{number}"\n\n--b{number}\n'
    return (out + "Content-Type: text/plain\n\nA word.\n").encode()


# ── folders
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fifo(name: str) -> Make:
    return lambda folder: os.mkfifo(folder / name)


def _link(name: str, target: str) -> Make:
    return lambda folder: (folder / name).symlink_to(target)


def _socket(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)  # the name of a socket may have a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket.txt")
    finally:
        os.chdir(here)


def _nested(folder: Path) -> None:
    here = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
        Path("deep.txt").write_text("deep")
    finally:
        os.chdir(here)


def _bytes_name(name: bytes) -> Make:
    def make(folder: Path) -> None:
        with open(os.fsencode(folder) + b"/" + name, "wb") as file:
            file.write(b"words")

    return make


def _mutual(folder: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (folder / one).mkdir()
        (folder / one / other).symlink_to(f"../{other}")


def _many(folder: Path) -> None:
    for number in range(3000):
        (folder / f"n{number}.txt").touch()


def _modules(folder: Path) -> None:
    """Python that leaves a trace when it runs."""
    for name in ("torch.py", "sitecustomize.py", "usercustomize.py", "numpy.py", "json.py", "whoosh.py", "Stemmer.py"):
        (folder / name).write_text(f"open({str(folder.parent / 'ran')!r}, 'w').write({name!r})\n")


def _ignore(line: str | bytes) -> Make:
    return lambda folder: _put(folder / "in" / ".gitignore", line.encode() if isinstance(line, str) else line)


def _settings(body: str) -> Make:
    return lambda folder: _put(folder / "mindchat.toml", body.encode())


RANDOM = bytes((number * 2654435761 >> 13) & 255 for number in range(60_000))
ESCAPES = "\x1b[31mred\x1b]0;title\x07\x1b]52;c;aGk=\x07\x9b5n\u202eevil\u2066 words"
BASE = base64.b64encode(RANDOM).decode()

FILES: dict[str, Make] = dict(
    [
        # text
        _file("line.txt", "word " * 1_000_000),
        _file("newlines.txt", "\n" * 5_000_000),
        _file("nul.txt", b"\0" * 100_000),
        _file("some-nul.txt", b"words\0" * 100 + b"more words " * 1000),
        _file("surrogates.txt", b"words \xed\xa0\x80 and \xed\xb0\x80"),
        _file("odd-utf16.txt", b"\xff\xfew\0o\0r"),
        _file("bad-utf32.txt", b"\xff\xfe\0\0" + b"\xff" * 41),
        _file("escapes.txt", ESCAPES * 200),
        _file("unfinished.txt", "words \x1b]0;" + "x" * 300_000),
        _file("marks.txt", "a" + "\u0301" * 500_000),
        _file("random.txt", RANDOM),
        _file("one-word.txt", "a" * 3_000_000),
        _file("wide.txt", "\U0001f600" * 300_000),
        _file("stops.txt", ". " * 500_000 + "!?" * 200_000),
        # Markdown, HTML, reStructuredText
        _file("brackets.md", "[[" * 200_000 + "](" * 200_000),
        _file("headings.md", "".join(f"{'#' * (n % 6 + 1)} H {n}\n\nx\n\n" for n in range(20_000))),
        _file("quotes.md", ">" * 200_000 + " deep"),
        _file("aliases.md", "---\naliases:\n" + "".join(f"  - Name {n}\n" for n in range(20_000)) + "---\nwords"),
        _file("anchors.md", "---\na: &a [x]\n" + "".join(f"b{n}: [*a, *a, *a]\n" for n in range(9000)) + "---\nwords"),
        _file("links.md", "[x](../../../../etc/passwd) [y](file:///etc/shadow) [[../../outside]] words"),
        _file("deep.html", "<div>" * 100_000 + "words"),
        _file("attributes.html", "<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">words</p>"),
        _file("laughs.html", _laughs() + "<p>&e9; words</p>"),
        _file("include.html", _outside("../outside.txt") + "<p>&e; words</p><iframe src='../outside.txt'></iframe>"),
        _file("table.html", "<table>" + "<tr><td>x<table>" * 3000 + "words"),
        _file("comment.html", "<!--" * 200_000 + "words"),
        _file("script.html", "<script>" + "while(1){}" * 10_000 + "</script><style>" + "x" * 10_000 + "</style> words"),
        _file("include.rst", "words\n\n.. include:: ../outside.txt\n\n.. literalinclude:: ../outside.txt\n"),
        _file("csv.rst", "words\n\n.. csv-table:: x\n   :file: ../outside.txt\n"),
        _file("raw.rst", "words\n\n.. raw:: html\n   :file: ../outside.txt\n"),
        _file("replace.rst", "words\n\n" + ".. |a| replace:: |b| |b|\n.. |b| replace:: |a| |a|\n\n|a|\n"),
        _file("roles.rst", "words " + "`x`_ " * 20_000 + "*" * 10_000),
        # tables, JSON
        _file("cell.csv", "a,b\n" + "x" * 2_000_000 + ",1\n"),
        _file("quote.csv", 'a,b\n"' + "words\n" * 50_000),
        _file("columns.csv", ",".join(f"c{n}" for n in range(50_000)) + "\n" + "1," * 50_000),
        _file("formula.csv", "a,b\n=cmd|' /C calc'!A0,@SUM(1)\n"),
        _file("delimiters.tsv", "\t" * 500_000 + "\n" + "\t\n" * 10_000),
        _file("deep.json", '{"a":' * 50_000 + "1" + "}" * 50_000),
        _file("numbers.json", '{"n": [1e999, -1e999, ' + "9" * 100_000 + "]}"),
        _file("keys.json", "{" + ",".join(f'"k{n}": {n}' for n in range(100_000)) + "}"),
        _file("twice.json", '{"a": "words", "a": "others", "\\u0000": "\\ud800"}'),
        _file("ids.jsonl", "".join(f'{{"id": "1", "title": "t", "text": "text {n}"}}\n' for n in range(2000))),
        _file("paths.jsonl", '{"id": "../../../etc/x", "title": "../t", "text": "words"}\n{"id": "", "text": "words"}\n'),
        _file("escapes.jsonl", '{"id": "\\u001b[31m", "title": "\\u001b]0;x\\u0007", "text": "words\\u202e"}\n'),
        _file("types.jsonl", '{"id": 1, "text": 5}\n[1]\nnull\n"x"\n{"id": {}, "text": []}\n' * 50),
        _file("empty-lines.jsonl", "\n" * 500_000 + '{"id": "a", "title": "t", "text": "words"}\n'),
        _file("surrogate.jsonl", '{"id": "\\ud800", "title": "\\udfff", "text": "words \\ud800"}\n'),
        # mail
        _file("nested.eml", _mail(800)),
        _file("headers.eml", b"Subject: x\n" + b"X-H: " + b"y" * 2_000_000 + b"\n\nwords"),
        _file("name.eml", b'Subject: x\nContent-Disposition: attachment; filename="../../x"\n\nwords'),
        _file("charset.eml", b"Subject: =?nonesuch?q?=FF?=\nContent-Type: text/plain; charset=nonesuch\n\nwords \xff"),
        _file("base64.eml", b"Subject: x\nContent-Transfer-Encoding: base64\n\n!!!! not base64 ===="),
        _file("many.mbox", b"From a\n" * 20_000),
        _file("boundary.eml", b'Content-Type: multipart/mixed; boundary=""\n\n--\n--\nwords'),
        # Word, OpenDocument, EPUB, Excel, PowerPoint
        _file("laughs.docx", _docx("<w:p><w:r><w:t>&e9;</w:t></w:r></w:p>", before=_laughs())),
        _file("outside.docx", _docx("<w:p><w:r><w:t>&e;</w:t></w:r></w:p>", before=_outside("../outside.txt"))),
        _file("relation.docx", _docx("", target="file:///etc/passwd", mode=' TargetMode="External"')),
        _file("up.docx", _docx("", target="../../../../outside.txt")),
        _file("deep.docx", _docx("<w:p>" * 20_000 + "words")),
        _file("paragraphs.docx", _docx("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 60_000)),
        _file("nested.docx", _nested_zip(12)),
        _file("slip.odt", _zip({"../../slipped.txt": "x", "/tmp/slipped.txt": "x", "content.xml": "<x/>"})),
        _file("spaces.odt", _odt('<t:p>a<t:s t:c="999999999"/>b</t:p>')),
        _file("outside.odt", _odt("<t:p>&e;</t:p>", _outside("../outside.txt"))),
        _file("deep.odt", _odt("<t:p>" * 50_000 + "words")),
        _file("tail.odt", _zip({"content.xml": "<x/>"}) + RANDOM),
        _file("loop.epub", _epub('<item id="a" href="b.opf"/>' * 3, '<itemref idref="a"/>' * 5000)),
        _file("up.epub", _epub('<item id="a" href="../../../outside.txt"/>', '<itemref idref="a"/>')),
        _file("absolute.epub", _epub('<item id="a" href="file:///etc/passwd"/>', '<itemref idref="a"/>')),
        _file("missing.epub", _epub('<item id="a" href="none.xhtml"/>', '<itemref idref="a"/><itemref idref="b"/>')),
        _file("bomb.xlsx", _zip({"xl/sharedStrings.xml": b"<sst>" + b" " * 60_000_000, "xl/workbook.xml": "<w/>"})),
        _file("empty.xlsx", _zip({"[Content_Types].xml": TYPES, "xl/workbook.xml": "<workbook/>"})),
        _file("empty.pptx", _zip({"[Content_Types].xml": TYPES, "ppt/presentation.xml": _laughs() + "<p>&e9;</p>"})),
        # PDF
        _file("loop.pdf", _pdf({1: CATALOG, 2: "<</Type/Pages/Kids[2 0 R]/Count 1>>"})),
        _file("count.pdf", _pdf({1: CATALOG, 2: "<</Type/Pages/Kids[]/Count 999999999>>"})),
        _file("arrays.pdf", _pdf({1: CATALOG, 2: "[" * 50_000 + "]" * 50_000})),
        _file("action.pdf", _pdf({1: "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>>>", 2: PAGES})),
        _file(
            "bomb.pdf",
            _pdf({1: CATALOG, 2: PAGES, 3: PAGE, 4: _stream(zlib.compress(b"BT " * 60_000_000, 9), "/FlateDecode")}),
        ),
        _file(
            "filters.pdf", _pdf({1: CATALOG, 2: PAGES, 3: PAGE, 4: _stream(b"x", "[" + "/ASCIIHexDecode" * 5000 + "]")})
        ),
        _file("xref.pdf", b"%PDF-1.4\nxref\n0 999999999\n" + b"0" * 20_000 + b"\nstartxref\n9\n%%EOF"),
        _file("prev.pdf", b"%PDF-1.4\nxref\n0 1\n0000000000 65535 f \ntrailer\n<</Prev 9/Size 1>>\nstartxref\n9\n%%EOF"),
        _file("magic.pdf", b"MZ" + RANDOM + b"%PDF-1.4"),
        # code
        _file("line.js", "var x=" + "1+" * 1_000_000 + "1;"),
        _file("key.py", "KEY = '''-----BEGIN RSA PRIVATE KEY-----\n" + BASE + "'''\n"),
        _file("tags.yaml", "!!python/object/apply:os.system ['touch ../ran']\nwords: 1\n"),
        # folders
        ("fifo", _fifo("pipe.txt")),
        ("fifo-ignore", _fifo(".gitignore")),
        ("socket", _socket),
        ("device", _link("zero.txt", "/dev/zero")),
        ("dangling", _link("gone.txt", "nowhere")),
        ("self", _link("self", "self")),
        ("link-out", _link("out", "../outside")),
        ("link-etc", _link("etc", "/etc")),
        ("link-file", _link("secret.txt", "../outside.txt")),
        ("mutual", _mutual),
        ("nested", _nested),
        ("bytes-name", _bytes_name(b"bad\xff\xfe.txt")),
        ("escape-name", _bytes_name(b"\x1b[31m\x1b]0;x\x07.txt")),
        ("newline-name", _bytes_name(b"a\nb\r.txt")),
        ("long-name", _bytes_name(b"n" * 251 + b".txt")),
        ("many", _many),
        ("modules", _modules),
        ("backtracking", _ignore("*a" * 60 + "*b\n" + "**/" * 100 + "x\n")),
        ("huge-ignore", _ignore("x" * 5_000_000)),
        ("bad-ignore", _ignore("[z-a\n(((\n\\\n" + "!" * 200)),
        ("model-setting", _settings('[model]\nname = "scripted:evil.toml"\n[paths]\nmodels = "."\n')),
        ("server-setting", _settings('[server]\nurl = "http://127.0.0.1:9"\n[memory]\nmode = "off"\n')),
        ("deep-setting", _settings("v = " + "[" * 9000 + "]" * 9000)),
        ("many-settings", _settings("".join(f"[s{n}]\nk = 1\n" for n in range(4000)))),
    ]
)  # fmt: skip
