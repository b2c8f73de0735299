"""What a turn did, judged against gold: retrieval, triggers, entities, citations.

Owns: these measures, each None where it is not defined (no gold, nothing retrieved). Does not own: answers
(metrics.py), counts (mindchat.trace). A passage supports if its id is a supporting id, or its title is a supporting
title for which the gold has no id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from mindchat.lab.evals.examples import Example, Gold, Support
from mindchat.lab.evals.metrics import normalise
from mindchat.trace import HopView, Trace
from mindchat.values import Passage

_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")


def supports(passage: Passage, support: Support) -> bool:
    """Whether this passage is that supporting one."""
    if support.pid is None:
        return passage.title == support.title
    if support.pid in (passage.id, passage.document.rpartition("#")[2], passage.title):
        return True
    path = PurePath(passage.document)  # a file may be named with or without suffix, with or without its folders
    return any(
        f"/{name}".endswith(f"/{support.pid}")
        for name in (path.as_posix(), path.with_suffix("").as_posix() if path.name else "")
    )


def _found(passages: Iterable[Passage], gold: Gold) -> set[Support]:
    return {support for passage in passages for support in gold.supporting if supports(passage, support)}


def retrieval(trace: Trace, gold: Gold) -> dict[str, float]:
    """support_recall, support_all (every one found), support_precision (of distinct passages) of all that was retrieved
    in the turn.
    """
    if not gold.supporting or not any(hop.subquery for hop in trace.hops):
        return {}
    found = _found(trace.passages, gold)
    scores = {
        "support_recall": len(found) / len(gold.supporting),
        "support_all": float(len(found) == len(gold.supporting)),
    }
    if trace.passages:
        right = sum(1 for passage in trace.passages if _found([passage], gold))
        scores["support_precision"] = right / len(trace.passages)
    return scores


def triggers(trace: Trace, gold: Gold) -> dict[str, float]:
    """trigger_precision: share of triggered hops that brought a supporting passage not seen before in this turn."""
    if not gold.supporting:
        return {}
    seen: set[Support] = set()
    useful: list[bool] = []
    for hop in trace.hops:
        found = _found(hop.passages, gold)
        if hop.trigger is not None:
            useful.append(bool(found - seen))
        seen |= found
    return {"trigger_precision": sum(useful) / len(useful)} if useful else {}


def _names(hops: Sequence[HopView]) -> list[str]:
    kept = [sifted.entity.text for hop in hops for sifted in hop.sifted if sifted.kept]
    return [normalise(text) for text in [*kept, *(hop.subquery for hop in hops)] if text]


def entities(trace: Trace, gold: Gold) -> dict[str, float]:
    """entity_coverage: share of the names on the gold path that occur, as whole words, in a kept entity or a sub-query."""
    wanted = {normalise(_BRACKETS.sub("", name)) for name in gold.entities} - {""}
    if not wanted or not trace.hops:
        return {}
    names = _names(trace.hops)
    covered = [name for name in wanted if any(f" {name} " in f" {text} " for text in names)]
    return {"entity_coverage": len(covered) / len(wanted)}


def citations(trace: Trace, example: Example, gold: Gold) -> dict[str, float]:
    """citation_precision (cited passages that support), citation_exact (quotes that stand in the question's own
    passage, where it is known).
    """
    cited = trace.answer.citations if trace.answer else ()
    if not cited:
        return {}
    scores: dict[str, float] = {}
    if gold.supporting:
        by_id = {passage.id: passage for passage in trace.passages}
        shown = [by_id.get(c.passage, Passage(c.passage, c.document, "", "", 0, 0)) for c in cited]
        scores["citation_precision"] = sum(1 for passage in shown if _found([passage], gold)) / len(shown)
    texts = {source.pid: source.text for source in example.context}
    known = [c for c in cited if c.passage in texts]
    if known:
        scores["citation_exact"] = sum(1 for c in known if c.quote and c.quote in texts[c.passage]) / len(known)
    return scores


def judge(trace: Trace, example: Example, gold: Gold) -> Mapping[str, float]:
    """All measures of this module that are defined for the turn."""
    return {
        **retrieval(trace, gold),
        **triggers(trace, gold),
        **entities(trace, gold),
        **citations(trace, example, gold),
    }
