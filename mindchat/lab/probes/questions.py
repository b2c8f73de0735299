"""Questions whose supporting documents are known, cut into supports and noise.

Owns: Study, sampling, the packaged demo as a question file with contexts. Does not own: file formats (evals.datasets),
what is done with the parts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, structs

from mindchat.config import Config, change
from mindchat.errors import UsageError
from mindchat.lab.evals import datasets
from mindchat.lab.evals.examples import Item, Source
from mindchat.lab.probes.cases import Options
from mindchat.paths import packaged
from mindchat.prompts.core import AssistantRole, UserRole
from mindchat.text.clean import clean, clean_line
from mindchat.values import Passage, Prompt, TurnState


class Study(Struct, frozen=True):
    """One question with its context taken apart."""

    item: Item
    supports: tuple[Source, ...]
    """In the order of the context."""
    noise: tuple[Source, ...]
    """The other passages, in a seeded order."""

    @property
    def group(self) -> str:
        """Type of the question; the number of its supports if the file names none."""
        return self.item.gold.type or f"{len(self.supports)} supports"


def studies(options: Options, fits: Callable[[Study], bool]) -> Iterator[Study]:
    """The first n of a seeded order that fit a probe; a larger n extends a smaller one. Raises UsageError if the file
    has none.
    """
    items = datasets.load(options.questions) if options.questions is not None else demo()
    found = 0
    for item in datasets.sample(items, None, options.seed):
        study = _study(item, options.seed)
        if study is not None and fits(study):
            found += 1
            yield study
            if found == options.n:
                return
    if not found:
        raise UsageError(
            f"{options.questions or 'The demo'} has no question that this probe can use.",
            "Each needs a context with marked supporting passages, such as MuSiQue's.",
        )


def _study(item: Item, seed: int) -> Study | None:
    """None unless every supporting passage stands in the context."""
    wanted = {support.pid or support.title for support in item.gold.supporting}
    supports = tuple(source for source in item.example.context if source.pid in wanted or source.title in wanted)
    if not item.gold.answerable or len(wanted) < 2 or len(supports) != len(wanted):
        return None
    noise = [source for source in item.example.context if source not in supports]
    random.Random(f"noise/{seed}/{item.example.id}").shuffle(noise)
    return Study(item, supports, tuple(noise))


def demo() -> list[Item]:
    """The packaged questions, each with all documents of the folders in which its supports stand."""
    home = packaged("corpora", "demo")
    found = []
    for item in datasets.load(home / "questions.jsonl"):
        names = [support.pid or support.title for support in item.gold.supporting]
        context = tuple(
            source
            for folder in sorted({name.partition("/")[0] for name in names})
            for source in _documents(home, folder)
        )
        found.append(structs.replace(item, example=structs.replace(item.example, context=context)))
    return found


def _documents(home: Path, folder: str) -> list[Source]:
    sources = []
    for path in sorted((home / folder).glob("*.md")):
        title, _, text = path.read_text(encoding="utf-8").partition("\n")
        sources.append(Source(clean_line(title.lstrip("# ")), clean(text).strip(), f"{folder}/{path.stem}"))
    return sources


class Layout:
    """The answer prompt over sources in a given order."""

    def __init__(self, role: str) -> None:
        config = change(change(Config(), "layout.role", role), "layout.order", "paper")
        self._composer = UserRole(config) if role == "user" else AssistantRole(config)

    def prompt(self, question: str, sources: Sequence[Source], repeat: int) -> Prompt:
        """CoRe's Table 11 or 4 with `repeat` repetitions."""
        passages = tuple(Passage(s.pid, s.pid, s.title, s.text, 0, len(s.text)) for s in sources)
        return self._composer.answer(TurnState(0, question, passages=passages), repeat, ())
