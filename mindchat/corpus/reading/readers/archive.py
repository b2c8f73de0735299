"""Formats that are zip files of XML: opened with care.

Owns: refusing bombs, broken and encrypted archives; an XML parser that fetches and expands nothing. Does not own: the
formats.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from mindchat.corpus.reading.encoding import open_regular
from mindchat.errors import DocumentError

MAX_UNPACKED = 300_000_000
"""Bytes that all members together may unpack to."""
MAX_RATIO = 200
"""Unpacked over packed size above which a large archive is a bomb; real documents stay below 30."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_archive(path: Path) -> zipfile.ZipFile:
    """The archive, after looking at what it claims. zipfile never reads more of a member than the claim. Raises
    DocumentError.
    """
    try:
        with open_regular(path) as file:
            start = file.read(8)
        if start == _OLE:
            raise DocumentError("is encrypted with a password, or in an old binary format")
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise DocumentError(f"cannot be read ({error.strerror or error})") from error
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DocumentError("is broken (no readable archive)") from error
    members = archive.infolist()
    unpacked, packed = sum(member.file_size for member in members), sum(member.compress_size for member in members)
    if unpacked > MAX_UNPACKED or (unpacked > 10_000_000 and unpacked > MAX_RATIO * max(packed, 1)):
        archive.close()
        raise DocumentError(f"unpacks from {packed:,} to {unpacked:,} bytes (a zip bomb?)")
    if any(member.flag_bits & 0x1 for member in members):
        archive.close()
        raise DocumentError("is encrypted with a password")
    return archive


def member(archive: zipfile.ZipFile, name: str) -> bytes:
    """One member; raises DocumentError if it is missing or broken."""
    try:
        return archive.read(name)
    except KeyError:
        raise DocumentError(f"is broken ({name} is missing)") from None
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, NotImplementedError, ValueError) as error:
        raise DocumentError(f"is broken ({name}: {error})") from error
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise DocumentError(f"is broken ({name} does not unpack)") from error
        raise


def parse_xml(data: bytes, name: str) -> Any:
    """The root element; no entity is expanded, nothing is fetched. Raises DocumentError."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"is broken ({name}: {error.msg})") from error
