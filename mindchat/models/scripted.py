"""A model that replays a tape: for tests of the loop and of screens, never for a claim about answers.

Owns: ScriptedModel, Reply and the notation of a reply. Does not own: any language ability. Notation: plain text, cut
into one token a word; `word{2.5}` gives the token an entropy of 2.5 nats, `word{2.5,0.6}` also an attention of 0.6 from
every later token. Unmarked tokens have entropy 0.01 and receive 0.1.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.ports import NEVER, Cancel
from mindchat.values import (
    Attended,
    Choice,
    Draft,
    Finish,
    Finished,
    Kept,
    Message,
    Piece,
    Prefilled,
    Prompt,
    Signal,
    Span,
    StreamItem,
    Text,
    Token,
)

_PIECE = re.compile(r"(\s*[^\s{]+|\s+)(?:\{([\d.]+)(?:,([\d.]+))?\})?")


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What the model does at one call."""

    text: str = ""
    """In the notation above; for sample(), the samples separated by lines of "---"."""
    scores: dict[str, float] = {}
    """For choose(): log-probability of each option; an option without one gets -9."""
    ends: bool = True
    """Whether the model closes its turn after the text (Finish.EOS); else the limit is reached."""


class _Cell(Struct, frozen=True):
    text: str
    entropy: float
    pull: float


def _cells(notation: str) -> list[_Cell]:
    return [_Cell(m[1], float(m[2]) if m[2] else 0.01, float(m[3]) if m[3] else 0.1) for m in _PIECE.finditer(notation)]


class ScriptedModel:
    """Plays its replies in order; a call after the last one raises UsageError, so that a test notices a call too many."""

    def __init__(
        self,
        tape: Sequence[Reply | str],
        *,
        provides: frozenset[Signal] = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION}),
        window: int = 4096,
        id: str = "scripted",
    ) -> None:
        self._tape = [Reply(item) if isinstance(item, str) else item for item in tape]
        self._provides, self._window, self._id = provides, window, id
        self._words: dict[str, int] = {}
        self._held: set[str] = set()
        self._usage = [0, 0, 0]
        self.prompts: list[Prompt] = []
        """Every prompt that was sent, for assertions."""

    @classmethod
    def from_file(cls, path: Path) -> ScriptedModel:
        """A tape from TOML: `[[reply]]` tables with the fields of Reply."""
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
            replies = msgspec.convert(tables["reply"], list[Reply])
        except (ValueError, LookupError, RecursionError) as error:
            raise UsageError(
                f"{path.name} is no tape of a scripted model.", "It holds [[reply]] tables in TOML."
            ) from error
        return cls(replies, id=f"scripted:{path.name}")

    @property
    def id(self) -> str:
        """Name of the tape."""
        return self._id

    @property
    def provides(self) -> frozenset[Signal]:
        """As given."""
        return self._provides

    @property
    def window(self) -> int:
        """As given; a word is a token."""
        return self._window

    def _next(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        if not self._tape:
            raise UsageError("The tape of the scripted model has ended.", "Add a [[reply]] for this call.")
        return self._tape.pop(0)

    def _prefill(self, prompt: Prompt) -> Prefilled:
        pieces = self.render(prompt).split()
        known = sum(1 for piece in pieces if piece in self._held)
        self._held.update(pieces)
        self._usage[0] += len(pieces) - known
        self._usage[1] += known
        return Prefilled(len(pieces), len(pieces), known, 0.0)

    def _id_of(self, text: str) -> int:
        return self._words.setdefault(text, len(self._words))

    def stream(
        self,
        prompt: Prompt,
        *,
        want: frozenset[Signal],
        max_tokens: int,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
        cancel: Cancel = NEVER,
    ) -> Iterator[StreamItem]:
        """Replay the next reply. `allow` must contain it."""
        reply = self._next(prompt)
        cells = _cells(reply.text)
        whole = "".join(cell.text for cell in cells)
        if allow is not None and whole not in allow:
            raise UsageError(f"The tape says {whole!r}, which is not allowed here.", f"Allowed: {', '.join(allow)}")
        cancel.check()
        yield self._prefill(prompt)
        ends = [whole.find(mark) for mark in stop if mark in whole]
        cut, at, finish = (min(ends) if ends else len(whole)), 0, Finish.EOS if reply.ends else Finish.LENGTH
        shown = 0
        for index, cell in enumerate(cells):
            if at >= cut:
                break
            if index >= max_tokens:
                finish = Finish.LENGTH
                break
            cancel.check()
            text = cell.text[: cut - at]
            at += len(cell.text)
            logprob = -cell.entropy if Signal.LOGPROB in want else None
            self._usage[2] += 1
            yield Token(index, self._id_of(text), text, logprob, cell.entropy if Signal.ENTROPY in want else None)
            shown += 1
            if index and Signal.ATTENTION in want:
                yield Attended(index - 1, tuple(c.pull for c in cells[: index - 1]))
        if shown and Signal.ATTENTION in want:
            yield Attended(shown - 1, tuple(c.pull for c in cells[: shown - 1]))
        yield Finished(Finish.STOP if ends and at >= cut else finish)

    def sample(
        self,
        prompt: Prompt,
        *,
        n: int,
        want: frozenset[Signal],
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 0.9,
        seed: int = 0,
        stop: Sequence[str] = (),
        cancel: Cancel = NEVER,
    ) -> Sequence[Draft]:
        """The n texts of the next reply (repeated in turn if it has fewer); hidden states spread with the number of
        different texts.
        """
        del want, max_tokens, temperature, top_k, top_p, seed, stop
        texts = [text.strip("\n") for text in self._next(prompt).text.split("---")]
        cancel.check()
        self._prefill(prompt)
        drafts = []
        for number in range(n):
            text = texts[number % len(texts)]
            tokens = tuple(
                Token(i, self._id_of(c.text), c.text, -c.entropy, c.entropy) for i, c in enumerate(_cells(text))
            )
            self._usage[2] += len(tokens)
            hidden = [1.0 if k == self._id_of(text) % 16 else 0.0 for k in range(16)]
            drafts.append(Draft("".join(t.text for t in tokens), tokens, None, Finish.EOS, hidden))
        return drafts

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """The scores of the next reply."""
        reply = self._next(prompt)
        cancel.check()
        self._prefill(prompt)
        scores: Mapping[str, float] = {key.strip(): value for key, value in reply.scores.items()}
        return [Choice(option, scores.get(option.strip(), -9.0), max(1, len(option.split()))) for option in options]

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        """More attention to longer words, so that an order exists."""
        cancel.check()
        self.prompts.append(prompt)
        pieces: list[Piece] = []
        for message in prompt.messages:
            for segment in message.segments:
                origin = segment.origin if isinstance(segment, Text) else "reasoning"
                pieces += [Piece(word, len(word) / 100, origin) for word in re.findall(r"\s*\S+", segment.text)]
        pieces += [Piece(token.text, len(token.text) / 100, "reasoning") for token in draft.tokens[: span.start]]
        return pieces

    def count(self, prompt: Prompt) -> int:
        """Words."""
        return len(self.render(prompt).split())

    def render(self, prompt: Prompt) -> str:
        """Role and words of each message."""
        return "\n".join(f"<{message.role}> {_text(message)}" for message in prompt.messages)

    def usage(self) -> tuple[int, int, int]:
        """Since the last call."""
        new, cached, generated = self._usage
        self._usage = [0, 0, 0]
        return new, cached, generated


def _text(message: Message) -> str:
    return "".join(segment.text if isinstance(segment, Text | Kept) else "" for segment in message.segments)
