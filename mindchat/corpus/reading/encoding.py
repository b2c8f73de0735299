"""From bytes to text.

Owns: finding the encoding, refusing what is no text, line ends, harmless characters. Does not own: formats.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from pathlib import Path
from typing import IO

from mindchat.errors import DocumentError
from mindchat.text.clean import clean

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 64 * 1024
_PIECE = 1 << 20
_SEQUENCE = re.compile(b"\x1b|\xc2[\x90\x98\x9b\x9d-\x9f]")
"""What may begin an escape sequence (text.clean), in UTF-8."""
_STRAY_NULS = 0.01
"""Share of bytes that may be NUL in a text; they are dropped."""


def normalise(text: str) -> str:
    """The form in which texts are stored and offsets count: \\n line ends, nothing that a terminal would obey."""
    return clean(text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").replace("\v", "\n"))


def decode(data: bytes, name: str) -> str:
    """The normalised text of a file's bytes; raises DocumentError for binary data."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return normalise(data.decode(encoding))
            except UnicodeDecodeError as error:
                raise DocumentError(
                    f"{name}: starts as {encoding} and does not go on so (byte {error.start})."
                ) from error
    if data.count(b"\0") <= len(data) * _STRAY_NULS:
        try:
            return _utf8(data)
        except UnicodeDecodeError:
            pass
    return normalise(data.decode(_guess(data, name), "replace"))


def _utf8(data: bytes) -> str:
    """The normalised text, line by line where that is the same: of a large text one character that needs four bytes, and
    one that is dropped, would take eight times the file's room. Raises UnicodeDecodeError.
    """
    if _SEQUENCE.search(data):  # an escape sequence may go on over lines
        return normalise(data.decode("utf-8"))
    pieces, start = [], 0
    while start < len(data):
        end = data.find(b"\n", start + _PIECE) + 1 or len(data)
        pieces.append(normalise(data[start:end].decode("utf-8")))
        start = end
    return "".join(pieces)


def _guess(data: bytes, name: str) -> str:
    sample = data[:_SAMPLE]
    if encoding := _bare_utf16(sample):
        return encoding
    if b"\0" in sample:
        raise DocumentError(f"{name}: is a binary file, not text.")
    import charset_normalizer

    match = charset_normalizer.from_bytes(sample).best()
    if match is None:
        raise DocumentError(f"{name}: is a binary file, or text in an encoding that cannot be told.")
    return match.encoding


def _bare_utf16(sample: bytes) -> str:
    """UTF-16 without a mark: nearly every second byte of western text is zero."""
    half = max(len(sample) // 2, 1)
    even, odd = sample[::2].count(0) / half, sample[1::2].count(0) / half
    if odd > 0.7 and even < 0.05:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 and odd < 0.05 else ""


def read_text(path: Path) -> str:
    """decode() of a whole file; raises DocumentError if it cannot be read."""
    return decode(read_bytes(path), path.name)


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, opened for reading. Never waits: what has become a pipe since it was seen is refused. Raises
    OSError, DocumentError.
    """
    handle = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    )
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DocumentError("is no regular file (device, pipe or socket)")
    return os.fdopen(handle, "rb")


def check_regular(path: Path) -> None:
    """Refuse what is no regular file before a reader waits for it. Raises DocumentError naming file and reason."""
    try:
        open_regular(path).close()
    except OSError as error:
        raise DocumentError(f"{path.name}: cannot be read ({error.strerror or error})") from error
    except DocumentError as error:
        raise DocumentError(f"{path.name}: {error.message}") from error


def read_regular(path: Path, most: int = -1) -> bytes:
    """At most `most` bytes of a regular file; -1: all. Raises DocumentError naming the reason, without the file's name."""
    try:
        with open_regular(path) as file:
            return file.read(most)
    except OSError as error:
        raise DocumentError(f"cannot be read ({error.strerror or error})") from error


def read_bytes(path: Path) -> bytes:
    """A whole file; raises DocumentError naming file and reason."""
    try:
        return read_regular(path)
    except DocumentError as error:
        raise DocumentError(f"{path.name}: {error.message}.") from error
