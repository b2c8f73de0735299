"""E-mail: single messages and mailboxes.

Owns: which part of a message is its text. Does not own: attachments' contents (they are named, not read).
"""

from __future__ import annotations

import email
import email.policy
import hashlib
import mailbox
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from pathlib import Path

from mindchat.corpus.reading.encoding import decode, read_bytes
from mindchat.corpus.reading.readers import BaseReader, Complain, title_of
from mindchat.corpus.reading.readers.html import render, to_unicode
from mindchat.corpus.reading.readers.script import Script
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

_HEADERS = ("From", "To", "Cc", "Date", "Subject")


class MailReader(BaseReader):
    """One message, one document; its subject is the title."""

    suffixes = frozenset({".eml"})

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Raises DocumentError for a file without headers."""
        message = email.message_from_bytes(read_bytes(path), policy=email.policy.default)
        if not message.keys():
            raise DocumentError("is no e-mail (it has no headers)")
        script = _script(message)
        yield self.document(path, _header(message, "Subject") or title_of(path), script.text()), script.chunks()


class MailboxReader(BaseReader):
    """An mbox: each message is a document."""

    suffixes = frozenset({".mbox"})
    streams = True

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """A message that cannot be read is complained about by its number."""
        tell, status, seen, number = complain or (lambda _: None), path.stat(), set[str](), 0
        box = mailbox.mbox(path, create=False)
        try:
            for number, key in enumerate(box.iterkeys(), 1):
                try:
                    raw = box.get_bytes(key)
                    script = _script(email.message_from_bytes(raw, policy=email.policy.default))
                except (DocumentError, ValueError, LookupError, TypeError, AttributeError, IndexError) as error:
                    tell(f"message {number}: cannot be read ({type(error).__name__})")
                    continue
                id_ = hashlib.sha1(raw).hexdigest()[:16]
                if id_ in seen or not script.text():
                    continue
                seen.add(id_)
                message = email.message_from_bytes(raw, policy=email.policy.default)
                title = _header(message, "Subject") or f"message {number}"
                document = Document(
                    f"{path}#{id_}",
                    title,
                    script.text(),
                    external_id=id_,
                    mtime_ns=status.st_mtime_ns,
                    size=status.st_size,
                )
                yield document, script.chunks()
        finally:
            box.close()
        if not number:
            raise DocumentError("is no mailbox (no message starts with 'From ')")


def _script(message: EmailMessage) -> Script:
    script = Script()
    script.block("\n".join(f"{name}: {words}" for name in _HEADERS if (words := _header(message, name))))
    body = message.get_body(("plain", "html"))
    if body is not None:
        data = body.get_payload(decode=True)
        if isinstance(data, bytes) and data.strip():
            if body.get_content_subtype() == "html":
                render(to_unicode(data, "message"), script)
            else:
                for block in _decoded(data, body.get_content_charset()).split("\n\n"):
                    script.block(block)
    names = [clean_line(str(part.get_filename()), 100) for part in message.iter_attachments() if part.get_filename()]
    script.block("Attachments: " + ", ".join(names) if names else "")
    return script


def _decoded(data: bytes, charset: str | None) -> str:
    try:
        words = data.decode(charset or "ascii")
    except (LookupError, UnicodeDecodeError):
        return decode(data, "message")
    return words.replace("\r\n", "\n")


def _header(message: EmailMessage, name: str) -> str:
    try:
        return clean_line(str(message.get(name, "")), 500)
    except (ValueError, LookupError, AttributeError, TypeError, IndexError):
        return ""  # a malformed header has no reading
