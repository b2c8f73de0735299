"""What a model claims about facts that are known, right and wrong: the material of a calibration.

Owns: single-hop questions from gold triples, the model's answers as memory would have stored them, labelling. Does not
own: fitting (calibrate.py), grounding and verifying (grounding.py, verification.py), the growing file that lets a cut
run go on (json_lines.py). The claims are the model's own answers, grounded and verified as in learn(): the distribution
that memory will meet.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.memory.learning.confidence import FEATURES, answer_signals, features
from mindchat.memory.learning.direction import reversed_in_text
from mindchat.memory.learning.grounding import Grounded, ground
from mindchat.memory.learning.slots import find_predicate, parse
from mindchat.memory.learning.verification import verify
from mindchat.paths import private
from mindchat.ports import Ask
from mindchat.storage.json_lines import appending, read
from mindchat.text.countries import RELATIONS, country_norm
from mindchat.text.folding import norm
from mindchat.text.foreign_json import decode_json
from mindchat.text.typed_spans import value_norm
from mindchat.values import Message, Passage, Prompt, Text

_PASSAGE = 600
"""Characters of a passage in the question's prompt."""
_TOKENS = 24
_OTHERS = 2
"""Passages beside the one about the subject, as a search brings them."""
_VERSION = "2"
"""Of the way claims are made; claims of another one are not taken up again."""


class Triple(Struct, frozen=True):
    """One gold fact with the passages that a search might bring."""

    question: str
    """Id of the data set's question; the unit of the folds."""
    subject: str
    predicate: str
    objects: tuple[str, ...]
    """Every gold value of this slot."""
    passages: tuple[Passage, ...]


class Labelled(Struct, frozen=True):
    """One claim that memory would have stored, and whether it is true."""

    question: str
    features: dict[str, float]
    right: bool


class Kept(Struct, frozen=True):
    """One asked triple on disk."""

    key: str
    refused: str
    """Why memory would have stored nothing; "" if it would."""
    claim: Labelled | None = None


def read_triples(path: Path) -> list[Triple]:
    """Gold triples of a 2WikiMultihopQA file (`meta.evidences`). Raises UsageError if there is none."""
    triples: list[Triple] = []
    spare: list[Passage] = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                row = decode_json(line)
                triples += _of_question(row, spare)
                spare = _passages(row)[:_OTHERS]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read: {error}.", "Calibration needs a 2WikiMultihopQA file with meta.evidences."
        ) from error
    if not triples:
        raise UsageError(
            f"{path.name} has no triple that memory's relations cover.",
            "Calibration needs a 2WikiMultihopQA file with meta.evidences.",
        )
    return triples


def _passages(row: dict[str, Any]) -> list[Passage]:
    return [Passage(p["pid"], row["id"], p["title"], p["text"], 0, len(p["text"])) for p in row["context"]]


def _of_question(row: dict[str, Any], spare: Sequence[Passage]) -> Iterator[Triple]:
    """Every slot of a question that a passage about its subject may fill, with others beside it: the question's own,
    else those of the last one.
    """
    gold: dict[tuple[str, str], list[str]] = {}
    for subject, relation, value in row.get("meta", {}).get("evidences", ()):
        try:
            gold.setdefault((subject, find_predicate(relation).name), []).append(value)
        except UsageError:
            continue  # a relation outside the closed vocabulary is never stored
    passages = _passages(row)
    for (subject, predicate), values in gold.items():
        names = norm(subject)
        own = [p for p in passages if names in norm(p.title) or norm(p.title) in names]
        others = [p for p in (*passages, *spare) if p not in own]
        if own:
            yield Triple(row["id"], subject, predicate, tuple(values), tuple(own[:1] + others[:_OTHERS]))


def claim_of(triple: Triple, ask: Ask) -> Labelled | str:
    """Ask for the triple's value as a hop would, and judge what memory would have stored; the reason if it would have
    stored nothing.
    """
    slot = parse(find_predicate(triple.predicate).question(triple.subject))
    if slot is None:
        return "no_slot"
    answer = ask.complete(
        _prompt(triple, slot.predicate.question(slot.subject)), max_tokens=_TOKENS, kind="calibrate", stop=("\n",)
    )
    grounded, reason = ground(slot, answer, triple.passages)
    if grounded is None:
        return reason
    if reversed_in_text(grounded):
        return "reversed"
    stated = verify(ask, grounded)
    signals = msgspec.structs.replace(
        answer_signals(answer, grounded.answer), p_true=stated.p_true, margin=stated.margin
    )
    return Labelled(triple.question, features(grounded, signals), _right(grounded, triple))


def _prompt(triple: Triple, question: str) -> Prompt:
    segments = [
        Text(f"{passage.title}: {passage.text[:_PASSAGE]}\n\n", origin="passage", passage=passage.id)
        for passage in triple.passages
    ]
    ask = Text(f"Question: {question}\nAnswer with a few words from the passages only.", origin="question")
    return Prompt((Message("user", (*segments, ask)), Message("assistant", (Text("Answer:"),))))


def _right(grounded: Grounded, triple: Triple) -> bool:
    relation = grounded.slot.predicate
    value = grounded.object_norm
    for gold in triple.objects:
        wanted = country_norm(gold) if relation.name in RELATIONS else value_norm(gold, relation.range)
        shorter, longer = sorted((set(value.split()), set(wanted.split())), key=len)
        if value == wanted or shorter <= longer or value.startswith(f"{wanted}-") or wanted.startswith(f"{value}-"):
            return True
    return False


def _key(triple: Triple) -> str:
    text = "|".join(
        [_VERSION, *FEATURES, triple.question, triple.subject, triple.predicate, *(p.id for p in triple.passages)]
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def collect(
    triples: Sequence[Triple],
    ask: Ask,
    *,
    limit: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
    keep: Path | None = None,
) -> tuple[list[Labelled], dict[str, int]]:
    """Labelled claims of up to `limit` triples, chosen by seed, and why the others gave none. `progress` is told
    (asked, of).

    `keep`: a file of what was asked so far; it is taken up where it ends. Raises UsageError for a file that holds
    something else, IndexLockedError if another process fills it, ResourceError if it cannot be written.
    """
    chosen = list(triples)
    random.Random(seed).shuffle(chosen)
    chosen = chosen[:limit]
    found: list[Labelled] = []
    refused: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        lines, known = None, dict[str, Kept]()
        if keep is not None:
            private(keep.parent)
            lines = stack.enter_context(appending(keep, "Wait for it."))
            known = {
                kept.key: kept
                for kept in read(keep, Kept, "a claim", "Delete the file and calibrate without --resume.")
            }
        for number, triple in enumerate(chosen, 1):
            key = _key(triple)
            if (kept := known.get(key)) is None:
                outcome = claim_of(triple, ask)
                kept = Kept(key, outcome) if isinstance(outcome, str) else Kept(key, "", outcome)
                if lines is not None:
                    lines.append(kept)
            if kept.claim is not None:
                found.append(kept.claim)
            else:
                refused[kept.refused] = refused.get(kept.refused, 0) + 1
            if progress is not None:
                progress(number, len(chosen))
    return found, refused
