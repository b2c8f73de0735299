"""Recorded turns for `mindchat bench cache`: which conversations, over which documents, under which layouts.

Owns: the questions, the settings that make a turn long, the F1 that stands beside a layout. Does not own: recording and replaying (bench.turns).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mindchat.config import Config
from mindchat.values import Passage

QUESTION = "What was the title of the novel published in 1966 by the director of the Dorian Gray film in which Hurd Hatfield plays the title role?"
FOLLOW_UP = "In which year was the director of the Dorian Gray film born?"
ORDERS, COPIES = ("paper", "docs_first"), (0, 1)


def conversations(config: Config, model: Any) -> Iterator[tuple[str, list[Any]]]:
    """Name and recorded turns of each row; a row is recorded when it is asked for."""
    from mindchat.bench.turns import Same, Unseen
    from mindchat.corpus.memory_index import MemoryIndex

    passages = demo_passages()
    index = MemoryIndex(passages, config.index)
    for order in ORDERS:
        for copies in COPIES:
            hops = five_hops(config, order, copies)
            yield f"five-hop mind question, {order}, repeat {copies}", _recorded(hops, model, Unseen(index), [QUESTION])
    mind = five_hops(config, "paper", 0)
    yield "second turn: mind, the same question again", _recorded(mind, model, index, [QUESTION, QUESTION])
    yield "second turn: mind, another question", _recorded(mind, model, index, [QUESTION, FOLLOW_UP])
    for order in ORDERS:
        once = _laid(config, "once", order, 0)
        yield f"second turn: once, same documents, {order}", _recorded(once, model, Same(passages[:4]), [QUESTION, FOLLOW_UP])


def five_hops(config: Config, order: Any, copies: int) -> Config:
    """Policy mind with a threshold of zero: every sentence with an uncertain word triggers, until max_hops."""
    laid = _laid(config, "mind", order, copies)
    rind = replace(laid.rind, threshold="fixed", fixed=0.0, first=True)
    return replace(laid, rind=rind, retrieve=replace(laid.retrieve, k=2, keep="accumulate", max_passages=12))


def _laid(config: Config, policy: str, order: Any, copies: int) -> Config:
    engine = replace(config.engine, policy=policy, max_hops=5)
    return replace(config, engine=engine, layout=replace(config.layout, order=order, repeat=copies), memory=replace(config.memory, mode="off"))


def _recorded(config: Config, model: Any, retriever: Any, questions: Sequence[str]) -> list[Any]:
    from mindchat import wiring
    from mindchat.bench.recorder import Recorder
    from mindchat.bench.turns import record

    recorder = Recorder(model)
    return record(wiring.build_engine(config, retriever, None, recorder), recorder, questions)


def demo_passages() -> list[Passage]:
    """The demo's documents, one passage each; those of the question's films first."""
    from mindchat.paths import packaged

    found = []
    for rank, file in enumerate(sorted(packaged("corpora", "demo").rglob("*.md"), key=lambda f: (f.parent.name != "films", f.name)), 1):
        title, _, body = file.read_text(encoding="utf-8").partition("\n")
        text = body.strip()
        found.append(Passage(f"p{rank}", f"{file.parent.name}/{file.stem}", title.removeprefix("# "), text, 0, len(text), rank=rank))
    return found


def layout_scores(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """F1 (points, with interval) of every arm of these evaluation folders, with its layout: what stands beside the seconds of a layout."""
    from mindchat.evals import report

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
