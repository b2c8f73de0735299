"""Fitting the confidence of a model's facts on questions whose answers are known, and the file that the gate reads.

Owns: asking the model single-hop questions built from gold triples, labelling what memory would have stored, logistic regression, the
reliability curve. Does not own: the features and the file's form (confidence.py), the command line.
The claims are the model's own answers, right and wrong, grounded and verified as in learn(): the distribution that memory will meet.
Reported numbers are out of fold (five folds over questions, not claims); the shipped weights are fitted on all.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.memory.clock import now
from mindchat.memory.confidence import FEATURES, Calibration, answer_signals, calibration_file, features
from mindchat.memory.folding import norm
from mindchat.memory.grounding import Grounded, ground
from mindchat.memory.results import COMMAND, Result
from mindchat.memory.slots import find_predicate, parse
from mindchat.memory.verify import verify
from mindchat.ports import Ask
from mindchat.values import Message, Passage, Prompt, Text

_FOLDS, _RIDGE, _BINS = 5, 1.0, 10
_LEAST = 30


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


class Calibrated(Result, frozen=True):
    """The outcome of a calibration."""

    path: str
    calibration: Calibration
    asked: int
    right: float
    """Share of the claims that were true."""
    served: float
    """Share of the claims at or above the threshold (out of fold)."""
    wrong: float
    """Share of wrong ones among those (out of fold)."""

    def render(self, command: str = COMMAND) -> str:
        """Threshold, errors and the reliability curve."""
        del command
        c = self.calibration
        lines = [
            f"{c.model}: {c.examples} claims from {self.asked} questions, {self.right:.0%} true",
            f"served from confidence {c.active:.2f}: {self.served:.0%} of the claims, {self.wrong:.1%} of those wrong",
            f"expected calibration error {c.ece:.3f} · Brier {c.brier:.3f} (out of fold)",
            "confidence   true   claims",
            *(f"      {sure:.2f}   {true:.2f}   {count:>6}" for sure, true, count in c.curve),
            f"written: {self.path}",
        ]
        return "\n".join(lines)


def read_triples(path: Path) -> list[Triple]:
    """Gold triples of a 2WikiMultihopQA file (`meta.evidences`). Raises UsageError if there is none."""
    triples: list[Triple] = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                triples += _of_question(json.loads(line))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "Calibration needs a 2WikiMultihopQA file with meta.evidences.") from error
    if not triples:
        raise UsageError(f"{path.name} has no triple that memory's relations cover.", "Calibration needs a 2WikiMultihopQA file with meta.evidences.")
    return triples


def _of_question(row: dict[str, Any]) -> Iterator[Triple]:
    gold: dict[tuple[str, str], list[str]] = {}
    for subject, relation, value in row.get("meta", {}).get("evidences", ()):
        try:
            gold.setdefault((subject, find_predicate(relation).name), []).append(value)
        except UsageError:
            continue  # a relation outside the closed vocabulary is never stored
    passages = [Passage(p["pid"], row["id"], p["title"], p["text"], 0, len(p["text"])) for p in row["context"]]
    for (subject, predicate), values in gold.items():
        names = norm(subject)
        own = [p for p in passages if names in norm(p.title) or norm(p.title) in names]
        others = [p for p in passages if p not in own]
        if own:
            yield Triple(row["id"], subject, predicate, tuple(values), tuple(own[:1] + others[:2]))


def claim_of(triple: Triple, ask: Ask) -> Labelled | None:
    """Ask for the triple's value as a hop would, and judge what memory would have stored; None if it would have stored nothing."""
    slot = parse(find_predicate(triple.predicate).question(triple.subject))
    if slot is None:
        return None
    answer = ask.complete(_prompt(triple, slot.predicate.question(slot.subject)), max_tokens=48, kind="calibrate", stop=("\n",))
    grounded, _ = ground(slot, answer, triple.passages)
    if grounded is None:
        return None
    stated = verify(ask, grounded)
    signals = msgspec.structs.replace(answer_signals(answer, grounded.answer), p_true=stated.p_true, margin=stated.margin)
    return Labelled(triple.question, features(grounded, signals), _right(grounded, triple))


def _prompt(triple: Triple, question: str) -> Prompt:
    segments = [Text("Answer the question in one sentence, from the passages.\n\n")]
    for passage in triple.passages:
        segments.append(Text(f"{passage.title}: {passage.text[:900]}\n\n", origin="passage", passage=passage.id))
    segments.append(Text(f"Question: {question}", origin="question"))
    return Prompt((Message("user", tuple(segments)), Message("assistant", (Text("Answer:"),))))


def _right(grounded: Grounded, triple: Triple) -> bool:
    from mindchat.memory.spans import value_norm

    value = grounded.object_norm
    for gold in triple.objects:
        wanted = value_norm(gold, grounded.slot.predicate.range)
        shorter, longer = sorted((set(value.split()), set(wanted.split())), key=len)
        if value == wanted or shorter <= longer or value.startswith(f"{wanted}-") or wanted.startswith(f"{value}-"):
            return True
    return False


def collect(triples: Sequence[Triple], ask: Ask, *, limit: int, seed: int, progress: Callable[[int, int], None] | None = None) -> list[Labelled]:
    """Labelled claims of up to `limit` triples, chosen by seed. `progress` is told (asked, of)."""
    chosen = list(triples)
    random.Random(seed).shuffle(chosen)
    chosen = chosen[:limit]
    found = []
    for number, triple in enumerate(chosen, 1):
        if (labelled := claim_of(triple, ask)) is not None:
            found.append(labelled)
        if progress is not None:
            progress(number, len(chosen))
    return found


def fit(claims: Sequence[Labelled], model: str, *, target: float = 0.05) -> tuple[Calibration, float, float]:
    """(calibration, share served, share wrong among served). `target`: accepted share of wrong facts. Raises UsageError under 30 claims."""
    import numpy as np

    if len(claims) < _LEAST:
        raise UsageError(f"Only {len(claims)} usable claims; a calibration needs {_LEAST}.", "Give a larger file or a higher --n.")
    x = np.array([[claim.features[name] for name in FEATURES] for claim in claims])
    y = np.array([float(claim.right) for claim in claims])
    questions = sorted({claim.question for claim in claims})
    fold_of = {question: i % _FOLDS for i, question in enumerate(questions)}
    folds = np.array([fold_of[claim.question] for claim in claims])
    out = np.empty(len(y))
    for fold in range(_FOLDS):
        held = folds == fold
        if held.any():
            weights, bias = _regress(x[~held], y[~held])
            out[held] = 1 / (1 + np.exp(-np.clip(x[held] @ weights + bias, -30, 30)))
    weights, bias = _regress(x, y)
    curve, ece = reliability(out.tolist(), y.tolist())
    active = _threshold(out.tolist(), y.tolist(), target)
    served = out >= active
    calibration = Calibration(
        model,
        dict(zip(FEATURES, map(float, weights), strict=True)),
        float(bias),
        active,
        len(claims),
        ece,
        float(np.mean((out - y) ** 2)),
        now(),
        tuple(curve),
    )
    return calibration, float(served.mean()), float(1 - y[served].mean()) if served.any() else 0.0


def _regress(x: Any, y: Any) -> tuple[Any, float]:
    """Ridge logistic regression by Newton's method on standardised features; (weights, bias) in the features' own units."""
    import numpy as np

    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-9] = 1.0
    z = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    penalty = np.diag([_RIDGE] * x.shape[1] + [1e-3])
    beta = np.zeros(z.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        step = np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + penalty, z.T @ (y - p) - penalty @ beta)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    weights = beta[:-1] / scale
    return weights, float(beta[-1] - weights @ mean)


def reliability(confidences: Sequence[float], truths: Sequence[float], bins: int = _BINS) -> tuple[list[tuple[float, float, int]], float]:
    """((mean confidence, share true, count) of each bin that is not empty, expected calibration error)."""
    members: dict[int, list[int]] = {}
    for i, confidence in enumerate(confidences):
        members.setdefault(min(bins - 1, int(confidence * bins)), []).append(i)
    curve = []
    for key in sorted(members):
        inside = members[key]
        curve.append((sum(confidences[i] for i in inside) / len(inside), sum(truths[i] for i in inside) / len(inside), len(inside)))
    return curve, sum(abs(sure - true) * count for sure, true, count in curve) / max(1, len(confidences))


def _threshold(confidences: Sequence[float], truths: Sequence[float], target: float) -> float:
    """The lowest confidence from which at most `target` of the claims are wrong; 0.95 if no such place exists."""
    ranked = sorted(zip(confidences, truths, strict=True), reverse=True)
    best, right = 0.95, 0.0
    for count, (confidence, true) in enumerate(ranked, 1):
        right += true
        if count >= 10 and 1 - right / count <= target:
            best = confidence
    return round(min(max(best, 0.5), 0.99), 4)


def calibrate(
    path: Path,
    ask: Ask,
    folder: Path,
    model: str,
    *,
    limit: int = 200,
    seed: int = 0,
    target: float = 0.05,
    progress: Callable[[int, int], None] | None = None,
) -> Calibrated:
    """`mindchat calibrate memory`: two model calls a triple; writes calibration/memory-MODEL.json under `folder` (where memory.db is)."""
    triples = read_triples(path)
    claims = collect(triples, ask, limit=limit, seed=seed, progress=progress)
    calibration, served, wrong = fit(claims, model, target=target)
    file = calibration_file(folder, model)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(calibration), indent=2))
    os.replace(part, file)
    right = sum(claim.right for claim in claims) / len(claims)
    return Calibrated(str(file), calibration, min(limit, len(triples)), right, served, wrong)
