"""Prompts to token ids: chat templates, an open assistant turn, words kept by id, documents that cannot speak as the
template.

Owns: which characters and ids are sent, and where each comes from. Does not own: wording (prompts), generation (hf).
How: a template is rendered once per sequence of roles, with place holders for the contents. So no content passes
through the template's own code, its literal parts are known, and strings in a content that look like control tokens can
be kept plain (tokens.Vocabulary.defuse).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jinja2.exceptions import TemplateError
from msgspec import Struct

from mindchat.errors import ModelMissingError
from mindchat.models.decode.detokenizer import Vocabulary
from mindchat.values import Kept, Message, Prompt, Role, Segment, Text

PLAIN = (
    "{% for message in messages %}{% if message['role'] == 'user' %}{{ 'User: ' }}{% elif message['role'] =="
    " 'assistant' %}{{ 'Assistant: ' }}{% endif %}{{ message['content'] + '\n\n' }}{% endfor %}{% if"
    " add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
"""For models that come without a template."""
PLAIN_STOP = "\nUser:"
"""What ends a turn in the plain template."""
DATE = "26 Jul 2024"
"""Llama 3.1's own default for the date in its system turn: the same prompt every day, so prefixes stay shared and runs
repeatable.
"""
_HOLDER = re.compile("( \n)?\ue000(\\d+)\ue001(\n )?")
_END_NAMES = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
)


class Rendered(Struct, frozen=True):
    """A prompt as it is sent."""

    ids: tuple[int, ...]
    origins: tuple[str, ...]
    """Per id: the Text.origin of its characters, "reasoning" for kept words, "template" for the rest."""
    text: str


class _Literal(Struct, frozen=True):
    text: str


class _Holder(Struct, frozen=True):
    index: int
    """Of the message."""
    strip_left: bool
    strip_right: bool


class _Frame(Struct, frozen=True):
    parts: tuple[_Literal | _Holder, ...]


class ChatFormat:
    """One tokenizer's way to write a conversation."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tokenizer: Any = vocabulary.tokenizer
        self.plain = not getattr(self.tokenizer, "chat_template", None)
        """True if the model brought no template and the plain one is used."""
        self.folds_system = False
        """True once a conversation's system message had to be put into the first user turn, because the template takes
        none.
        """
        self._frame = lru_cache(64)(self._make_frame)
        self.render = lru_cache(16)(self._render)

    # ── frames: the template's own characters ──

    def _make_frame(self, roles: tuple[Role, ...], opened: bool) -> _Frame:
        """Literals and place holders for these roles; with `opened`, everything after the last holder (the turn's end)
        is left out.
        """
        contents = [(role, _holder(i)) for i, role in enumerate(roles)]
        problem: Exception | None = None
        for fold in (False, True):
            turns = _folded(contents) if fold else contents
            try:
                text = self._apply(turns, generate=not opened)
            except TemplateError as error:
                problem = error
                continue
            frame = _parse(text)
            if sorted(part.index for part in frame.parts if isinstance(part, _Holder)) == list(range(len(roles))):
                self.folds_system = self.folds_system or fold
                return _opened(frame) if opened else frame
        raise ModelMissingError(
            f"The model's chat template cannot write this conversation: {problem or 'it drops a message'}.",
            "Choose an instruct model.",
        )

    def _apply(self, turns: Sequence[tuple[str, str]], *, generate: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        options: dict[str, Any] = {"chat_template": PLAIN} if self.plain else {}
        try:
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=generate, date_string=DATE, **options
            )
        except TemplateError:
            raise
        except Exception as error:  # a template is a stranger's program: it may raise anything
            raise TemplateError(f"{type(error).__name__}: {error}") from error
        return self._bos() + str(text) if self.plain else str(text)

    def _bos(self) -> str:
        """The begin-of-text token, if the tokenizer puts one before plain text."""
        bos = getattr(self.tokenizer, "bos_token", None)
        ids = list(self.tokenizer("", add_special_tokens=True)["input_ids"])
        return str(bos) if bos and ids[:1] == [self.tokenizer.bos_token_id] else ""

    def end_ids(self) -> frozenset[int]:
        """Ids that end the assistant's turn: known end marks, and the control tokens that this template writes."""
        literal = (
            ""
            if self.plain
            else self._apply([("user", "\ue000"), ("assistant", "\ue000"), ("user", "\ue000")], generate=True)
        )
        added = self.vocabulary.added
        return frozenset(
            i for i, t in added.items() if str(t.content) in _END_NAMES or (t.special and str(t.content) in literal)
        )

    # ── rendering ──

    def _render(self, prompt: Prompt) -> Rendered:
        """The prompt's ids, their origins, and every character sent."""
        messages = prompt.messages
        opened = (
            bool(messages)
            and messages[-1].role == "assistant"
            and any(s.text or isinstance(s, Kept) for s in messages[-1].segments)
        )
        if messages and messages[-1].role == "assistant" and not opened:
            messages = messages[:-1]
        writer = _Writer(self.vocabulary)
        for part in self._frame(tuple(m.role for m in messages), opened).parts:
            if isinstance(part, _Literal):
                writer.literal(part.text)
            else:
                last = opened and part.index == len(messages) - 1
                for segment in self._segments(messages[part.index], part, last):
                    writer.segment(segment)
        return writer.close()

    def _segments(self, message: Message, holder: _Holder, last: bool) -> list[Segment]:
        """The message's segments, trimmed where the template trims; earlier thoughts are left out as thinking models'
        templates do.
        """
        segments = list(message.segments)
        if message.role == "assistant" and not last and "</think>" in str(self.tokenizer.chat_template):
            text = "".join(segment.text for segment in segments)
            if "</think>" in text:
                segments = [Text(text.rpartition("</think>")[2].lstrip("\n"), "history")]
        if holder.strip_left and segments and isinstance(segments[0], Text):
            segments[0] = _with(segments[0], segments[0].text.lstrip())
        if holder.strip_right and not last and segments and isinstance(segments[-1], Text):
            segments[-1] = _with(segments[-1], segments[-1].text.rstrip())
        return segments


def _holder(index: int) -> str:
    """A place holder in white space: what of it is missing afterwards shows whether the template trims."""
    return f" \n\ue000{index}\ue001\n "


def _with(segment: Text, text: str) -> Text:
    return Text(text, segment.origin, segment.passage, segment.copy)


def _folded(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Turns for templates that take no system message or want strict alternation: system goes into the next user turn,
    equals are joined.
    """
    joined: list[tuple[str, str]] = []
    for role, content in turns:
        role = "user" if role == "system" else role
        if joined and joined[-1][0] == role:
            joined[-1] = (role, joined[-1][1] + "\n\n" + content)
        else:
            joined.append((role, content))
    return joined


def _parse(text: str) -> _Frame:
    parts: list[_Literal | _Holder] = []
    at = 0
    for match in _HOLDER.finditer(text):
        parts.append(_Literal(text[at : match.start()]))
        parts.append(_Holder(int(match[2]), match[1] is None, match[3] is None))
        at = match.end()
    parts.append(_Literal(text[at:]))
    return _Frame(tuple(part for part in parts if not isinstance(part, _Literal) or part.text))


def _opened(frame: _Frame) -> _Frame:
    """The frame up to its last place holder: the assistant's turn stays open."""
    last = max(i for i, part in enumerate(frame.parts) if isinstance(part, _Holder))
    return _Frame(frame.parts[: last + 1])


class _Writer:
    """Collects characters with their origins and encodes them in the longest stretches that are safe to encode
    together.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._text: list[str] = []
        self._stretch: list[tuple[str, str]] = []
        self._ids: list[int] = []
        self._origins: list[str] = []

    def literal(self, text: str) -> None:
        """The template's own characters: its control tokens are control tokens."""
        self._text.append(text)
        self._stretch.append((text, "template"))

    def segment(self, segment: Segment) -> None:
        """Content: new words, or words kept by id."""
        self._text.append(segment.text)
        if isinstance(segment, Text):
            self._plain(segment.text, segment.origin)
        else:
            self._kept(segment)

    def _plain(self, text: str, origin: str) -> None:
        parts = self._vocabulary.defuse(text)
        for i, part in enumerate(parts):
            if i:
                self._flush()
            self._stretch.append((part, origin))

    def _kept(self, kept: Kept) -> None:
        """The ids as far as they write the kept text; a remainder (a token that was cut in the middle) is encoded as
        text.
        """
        self._flush()
        decoder, at, held = self._vocabulary.detokenizer(), 0, 0
        for count, token in enumerate(kept.ids, 1):
            piece = decoder.feed(token)
            if not kept.text.startswith(piece, at):
                break
            at += len(piece)
            if piece or token in self._vocabulary.special:
                held = count
        else:
            held = len(kept.ids)
        self._ids += kept.ids[:held]
        self._origins += ["reasoning"] * held
        if at < len(kept.text):
            self._plain(kept.text[at:], "reasoning")

    def _flush(self) -> None:
        """Encode the stretch. The first one of a prompt as the tokenizer does; a later one without a dummy space in
        front.
        """
        text = "".join(part for part, _ in self._stretch)
        if text:
            ids, starts = self._encode(text)
            edges, at = [], 0
            for part, origin in self._stretch:
                at += len(part)
                edges.append((at, origin))
            self._ids += ids
            self._origins += [next(origin for edge, origin in edges if start < edge) for start in starts]
        self._stretch = []

    def _encode(self, text: str) -> tuple[list[int], list[int]]:
        """Ids and the last character each one covers (for its origin)."""
        tokenizer = self._vocabulary.tokenizer
        if self._ids or not getattr(tokenizer, "is_fast", False):
            ids = (
                self._vocabulary.after_newline(text)
                if self._ids
                else list(tokenizer(text, add_special_tokens=False)["input_ids"])
            )
            ends, at = [], 0
            for token in ids:
                at += max(len(self._vocabulary.literal(token)), 1)
                ends.append(min(at, len(text)) - 1)
            return ids, ends
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(encoded["input_ids"]), [
            min(max(end - 1, start), len(text) - 1) for start, end in encoded["offset_mapping"]
        ]

    def close(self) -> Rendered:
        """Everything written."""
        self._flush()
        return Rendered(tuple(self._ids), tuple(self._origins), "".join(self._text))
