"""Token ids to characters, exactly: which characters became final with which token.

Owns: the bytes that each id stands for (byte-level and sentencepiece vocabularies), incremental decoding, encoding of
plain text.
Does not own: chat templates (templates), words (mindchat.word_signals). Trap: a tokenizer's own `offset_mapping` and
`word_ids` are wrong for some byte-level vocabularies, so neither is used for generated text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from mindchat.text.clean import Cleaner

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
_SAMPLE = "Zürich, a\u0301 東京 🙂 the 3rd\nof  May"


def byte_alphabet() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level vocabularies (GPT-2's convention), inverted."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(256 + i): byte for i, byte in enumerate(rest)}


class Detokenizer:
    """Incremental decoding of one stream of ids; text is cleaned of what a terminal would obey (mindchat.text.clean)."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = Cleaner()

    def feed(self, token: int) -> str:
        """The characters that became final with this token; "" while one is incomplete."""
        return self._cleaner.feed(self._utf8.decode(self._vocabulary.bytes_of(token)))

    def close(self) -> str:
        """What was held back; a character that was never completed is dropped."""
        return self._cleaner.close()


class Vocabulary:
    """A tokenizer's ids as bytes. `tokenizer` is a transformers tokenizer of any backend."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.added: dict[int, Any] = dict(tokenizer.added_tokens_decoder)
        self.special = frozenset(i for i, token in self.added.items() if token.special)
        self._bytes: dict[int, bytes] = {}
        self._alphabet = byte_alphabet() if self._byte_level() else None

    def _byte_level(self) -> bool:
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is None:
            return False
        decoder = backend.decoder  # its own state is a line of JSON; the whole tokenizer's would be megabytes
        return decoder is not None and b"ByteLevel" in decoder.__getstate__()

    def bytes_of(self, token: int) -> bytes:
        """The UTF-8 bytes this id writes; b"" for special tokens, which are no text."""
        known = self._bytes.get(token)
        if known is None:
            known = self._bytes[token] = b"" if token in self.special else self._spell(token)
        return known

    def _spell(self, token: int) -> bytes:
        if token in self.added:
            return str(self.added[token].content).encode()
        piece = self.tokenizer.convert_ids_to_tokens(token)
        if piece is None:  # an id beyond the tokenizer's vocabulary: padding rows of the embedding
            return b""
        if self._alphabet is not None:
            return bytes(self._alphabet[char] for char in piece if char in self._alphabet)
        if match := _BYTE_TOKEN.match(piece):
            return bytes([int(match[1], 16)])
        return str(piece).replace("\u2581", " ").encode()

    def literal(self, token: int) -> str:
        """The token for showing: special tokens by their name, incomplete characters as U+FFFD."""
        if token in self.added:
            return str(self.added[token].content)
        return self.bytes_of(token).decode("utf-8", "replace")

    def detokenizer(self) -> Detokenizer:
        """A decoder for one stream."""
        return Detokenizer(self)

    def pieces(self, tokens: Iterable[int]) -> list[str]:
        """The text of each token by incremental decoding."""
        decoder = self.detokenizer()
        return [decoder.feed(token) for token in tokens]

    def shown(self, tokens: Sequence[int]) -> list[str]:
        """pieces(), with control tokens by their names: what a person may see of a prompt."""
        return [
            self.literal(token) if token in self.special else piece
            for token, piece in zip(tokens, self.pieces(tokens), strict=True)
        ]

    def text(self, tokens: Iterable[int]) -> str:
        """All text of the tokens, as pieces() joined."""
        return "".join(self.pieces(tokens))

    @cached_property
    def _prepends(self) -> bool:
        """Whether encoding puts a space before the first word (sentencepiece's dummy prefix)."""
        ids = self._raw("x")
        return bool(ids) and self.bytes_of(ids[0])[:1] == b" "

    def _raw(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def continuation(self, text: str) -> list[int]:
        """Ids of a text that continues something: no dummy prefix; strings that look like special tokens stay plain
        text.
        """
        ids: list[int] = []
        for part in self.defuse(text):
            ids += self.after_newline(part) if self._prepends else self._raw(part)
        return ids

    def after_newline(self, text: str) -> list[int]:
        """Encode behind a newline and drop it: in sentencepiece vocabularies a newline never merges with what follows."""
        anchor, ids = self._raw("\n"), self._raw("\n" + text)
        return ids[len(anchor) :] if self._prepends and ids[: len(anchor)] == anchor else self._raw(text)

    @cached_property
    def _markers(self) -> re.Pattern[str] | None:
        """Strings that the tokenizer would turn into control tokens: special ones, and tags that its chat template
        speaks in.
        """
        template = str(getattr(self.tokenizer, "chat_template", None) or "")
        names = {
            str(t.content)
            for t in self.added.values()
            if str(t.content).strip() and (t.special or str(t.content) in template)
        }
        names = {name for name in names if len(name) > 1}
        return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True)))) if names else None

    def defuse(self, text: str) -> list[str]:
        """The text cut inside every string that would become a control token; encoded apart, the parts are plain words.

        This is what keeps a document from closing the user's turn. Joined, the parts are the text.
        """
        if self._markers is None or not text:
            return [text] if text else []
        parts = []
        while match := self._markers.search(text):
            cut = match.start() + 1
            parts.append(text[:cut])
            text = text[cut:]
        return [*parts, text] if text else parts

    def exact(self) -> bool:
        """Whether the byte table agrees with the tokenizer's own decoding on a sample; checked once at load."""
        ids = self._raw(_SAMPLE)
        joined = b"".join(self.bytes_of(i) for i in ids).decode("utf-8", "replace")
        own = self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return joined.strip() == str(own).strip()

    def spans(self, tokens: Sequence[int]) -> list[tuple[int, int]]:
        """Half-open character spans of the tokens in text(tokens)."""
        spans, at = [], 0
        for piece in self.pieces(tokens):
            spans.append((at, at + len(piece)))
            at += len(piece)
        return spans
