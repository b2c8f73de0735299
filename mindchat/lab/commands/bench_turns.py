"""Recorded turns for `mindchat bench cache`: which conversations, over which documents, under which layouts.

Owns: the questions, the settings that make a turn long, the F1 that stands beside a layout. Does not own: recording and
replaying (bench.turns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mindchat.config import Config
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage

QUESTION = (
    "What was the title of the novel published in 1966 by the director of the Dorian Gray film in which Hurd Hatfield"
    " plays the title role?"
)
FOLLOW_UP = "In which year was the director of the Dorian Gray film born?"
LISTS = (
    (
        "Which of these directors was born first: the director of Winter Light, of Rooster Cogburn, of Under the Sun of"
        " Rome, of Vacanze a Ischia or of The Colossus of Rhodes?"
    ),
    (
        "Who directed The Seventh Seal, who directed True Grit, who directed Romeo and Juliet, who directed Vacanze a"
        " Ischia, and who directed The Colossus of Rhodes?"
    ),
)
"""Questions that ask for five things: the default model, which ends questions of the demo after four hops or fewer,
makes five of these.
"""
LAYOUTS: tuple[tuple[str, int], ...] = (("paper", 0), ("paper", 1), ("docs_first", 0), ("docs_first", 1))
"""layout.order and layout.repeat of the rows of a five-hop question."""
HOPS = 5


def conversations(
    config: Config, model: Any, told: Callable[[str], None] = lambda what: None
) -> Iterator[tuple[str, list[Any]]]:
    """Name and recorded turns of each row; a row is recorded when it is asked for. `told` hears what is being recorded."""
    from mindchat.corpus.search.memory_index import MemoryIndex
    from mindchat.lab.bench.turns import Same, Unseen

    passages = demo_passages()
    index = MemoryIndex(passages, config.index)
    told("looking for a question with five hops")
    first = _longest(five_hops(config, *LAYOUTS[0]), model, lambda: Unseen(index))
    yield _name(*LAYOUTS[0]), first
    asked = first[0].question
    for order, copies in LAYOUTS[1:]:
        told(f"recording: {_name(order, copies)}")
        yield _name(order, copies), _recorded(five_hops(config, order, copies), model, Unseen(index), [asked])
    mind = _laid(config, "mind", "paper", 0)
    for name, second in (("the same question again", QUESTION), ("another question", FOLLOW_UP)):
        told(f"recording: mind, {name}")
        yield f"second turn: mind, {name}", _recorded(mind, model, index, [QUESTION, second])
    for order in ("paper", "docs_first"):
        once = _laid(config, "once", order, 0)
        told(f"recording: once, {order}")
        yield (
            f"second turn: once, same documents, {order}",
            _recorded(once, model, Same(passages[:4]), [QUESTION, FOLLOW_UP]),
        )


def _name(order: str, copies: int) -> str:
    return f"five-hop mind question, {order}, repeat {copies}"


def five_hops(config: Config, order: Any, copies: int) -> Config:
    """Policy mind with a threshold of zero and without anchors: every sentence with an uncertain word triggers, until
    max_hops.
    """
    laid = _laid(config, "mind", order, copies)
    return replace(
        laid,
        rind=replace(laid.rind, threshold="fixed", fixed=0.0, first=True, anchors=False),
        retrieve=replace(laid.retrieve, k=2, keep="accumulate", max_passages=12),
        engine=replace(laid.engine, max_hops=HOPS, reasoning_tokens=512),
    )


def _longest(config: Config, model: Any, retriever: Callable[[], Any]) -> list[Any]:
    """The first question of the demo that takes this model five hops, else the one with the most: two repeated
    sub-queries end a turn early.
    """
    best: list[Any] = []
    for question in candidates():
        found = _recorded(config, model, retriever(), [question])
        if not best or (found[0].hops, found[0].searches) > (best[0].hops, best[0].searches):
            best = found
        if best[0].hops >= HOPS:
            break
    return best


def candidates() -> list[str]:
    """Questions about the demo that take several steps."""

    from mindchat.paths import packaged

    lines = packaged("corpora", "demo", "questions.jsonl").read_bytes().splitlines()
    rows = [decode_json(line, type=dict[str, Any]) for line in lines if line.strip()]
    return [
        *LISTS,
        QUESTION,
        *(row["question"] for row in rows if row["type"] == "compositional" and row["question"] != QUESTION),
    ]


def _laid(config: Config, policy: str, order: Any, copies: int) -> Config:
    return replace(
        config,
        engine=replace(config.engine, policy=policy),
        layout=replace(config.layout, order=order, repeat=copies),
        memory=replace(config.memory, mode="off"),
    )


def _recorded(config: Config, model: Any, retriever: Any, questions: Sequence[str]) -> list[Any]:
    from mindchat import wiring
    from mindchat.lab.bench.recorder import Recorder
    from mindchat.lab.bench.turns import record

    recorder = Recorder(model)
    return record(wiring.build_engine(config, retriever, None, recorder), recorder, questions)


def demo_passages() -> list[Passage]:
    """The demo's documents, one passage each; those of the question's films first."""
    from mindchat.paths import packaged

    found = []
    for rank, file in enumerate(
        sorted(packaged("corpora", "demo").rglob("*.md"), key=lambda f: (f.parent.name != "films", f.name)), 1
    ):
        title, _, body = file.read_text(encoding="utf-8").partition("\n")
        text = body.strip()
        found.append(
            Passage(
                f"p{rank}", f"{file.parent.name}/{file.stem}", title.removeprefix("# "), text, 0, len(text), rank=rank
            )
        )
    return found


def layout_scores(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """F1 (points, with interval) of every arm of these evaluation folders, with its layout: what stands beside the
    seconds of a layout.
    """
    from mindchat.lab.evals import report

    found = report.build(folders)
    settings = {arm.name: arm.settings for run in found.runs.values() for arm in run.arms}
    return [
        {
            "dataset": dataset.dataset,
            "arm": arm.arm,
            **{key: settings.get(arm.arm, {}).get(f"layout.{key}") for key in ("order", "repeat")},
            "n": arm.total.n,
            "f1": [round(100 * value, 1) for value in (arm.total.f1.mean, arm.total.f1.low, arm.total.f1.high)],
        }
        for dataset in found.datasets
        for arm in dataset.arms
    ]
