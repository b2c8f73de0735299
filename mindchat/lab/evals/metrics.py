"""Official answer metrics, one rule a dataset.

Owns: SQuAD normalisation, EM, token F1, yes/no rules, label accuracy, DRAGIN's variants, RULES (dataset → rule). IIRC's
set scoring is in drop.py, what retrieval, citations and triggers achieved in behaviour.py. Does not own: answer
extraction (mindchat.answers).
Source: the published scorers of SQuAD 1.1, HotpotQA, 2WikiMultihopQA v1.1, MuSiQue, StrategyQA, DROP/IIRC and DRAGIN.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from mindchat.answers import says_unknown
from mindchat.lab.evals import drop
from mindchat.lab.evals.examples import Gold

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_POLAR = ("yes", "no", "noanswer")

Scores = dict[str, float]
Rule = Callable[[str, Gold], Scores]


def normalise(text: str) -> str:
    """Lower case, ASCII punctuation deleted (not spaced), articles removed, spaces collapsed: "The U.S." → "us",
    "1,000" → "1000".

    Unicode quotes, dashes and diacritics stay, as in the official scripts.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact(prediction: str, gold: str) -> float:
    """1.0 if both normalise to the same string."""
    return float(normalise(prediction) == normalise(gold))


def overlap(prediction: str, gold: str, *, polar: bool) -> tuple[float, float]:
    """(precision, recall) of the bags of tokens, each in [0, 1].

    polar: HotpotQA's rule, by which yes, no and noanswer on either side score 0 unless both sides are equal. Without it
    (MuSiQue, SQuAD) two empty strings score 1.
    """
    guess, truth = normalise(prediction), normalise(gold)
    if polar and guess != truth and (guess in _POLAR or truth in _POLAR):
        return 0.0, 0.0
    a, b = guess.split(), truth.split()
    if not a or not b:
        both = float(a == b and not polar)
        return both, both
    common = sum((Counter(a) & Counter(b)).values())
    return common / len(a), common / len(b)


def harmonic(precision: float, recall: float) -> float:
    """F1 of a precision and a recall; 0 if both are."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def token_f1(prediction: str, gold: str, *, polar: bool) -> float:
    """Bag-of-tokens F1 in [0, 1]; see overlap for the yes/no rule."""
    return harmonic(*overlap(prediction, gold, polar=polar))


def contains(prediction: str, gold: str) -> float:
    """1.0 if the gold answer stands in the prediction as whole words in a row (the "accuracy" of span answers)."""
    wanted = normalise(gold)
    return float(bool(wanted) and f" {wanted} " in f" {normalise(prediction)} ")


def best(metric: Callable[[str, str], float], prediction: str, golds: Iterable[str]) -> float:
    """The highest value over the alternatives; 0.0 if there is none."""
    return max((metric(prediction, gold) for gold in golds), default=0.0)


def _span(prediction: str, golds: tuple[str, ...], *, polar: bool) -> Scores:
    return {
        "em": best(exact, prediction, golds),
        "f1": best(lambda p, g: token_f1(p, g, polar=polar), prediction, golds),
        "accuracy": best(contains, prediction, golds),
    }


def hotpotqa(prediction: str, gold: Gold) -> Scores:
    """One gold string in the official files; yes/no rule."""
    return _span(prediction, gold.answers, polar=True)


def wiki2(prediction: str, gold: Gold) -> Scores:
    """Answer, aliases and demonyms, the best EM and the best F1 taken separately; em_dragin and f1_dragin do without
    demonyms.
    """
    official = _span(prediction, (*gold.answers, *gold.demonyms), polar=True)
    narrow = _span(prediction, gold.answers, polar=True)
    return {**official, "em_dragin": narrow["em"], "f1_dragin": narrow["f1"]}


def musique(prediction: str, gold: Gold) -> Scores:
    """Answer and aliases, without a yes/no rule."""
    return _span(prediction, gold.answers, polar=False)


def polar_word(text: str) -> str:
    """The yes or no with which a text begins (true and false count), else ""."""
    first = normalise(text).split(" ", 1)[0]
    return {"yes": "yes", "true": "yes", "no": "no", "false": "no"}.get(first, "")


def strategyqa(prediction: str, gold: Gold) -> Scores:
    """Accuracy; anything but yes or no is wrong. EM and F1 are the same number, so that tables over datasets stay
    readable.
    """
    right = float(polar_word(prediction) == gold.answers[0].lower())
    return {"em": right, "f1": right, "accuracy": right}


def dragin_strategyqa(text: str) -> str:
    """DRAGIN's reading of a whole reply: after the first "the answer is", "yes" if three letters say so, else "no"; ""
    without the phrase.
    """
    _, phrase, rest = text.partition("the answer is")
    if not phrase:
        return ""
    return "yes" if rest.strip()[:3].lower() == "yes" else "no"


_LABELS = {
    "support": "support",
    "supports": "support",
    "supported": "support",
    "yes": "support",
    "true": "support",
    "contradict": "contradict",
}
_LABELS |= {
    "contradicts": "contradict",
    "contradicted": "contradict",
    "refutes": "contradict",
    "refuted": "contradict",
    "no": "contradict",
}
_LABELS |= {"false": "contradict"}


def scifact(prediction: str, gold: Gold) -> Scores:
    """Label accuracy; the first word decides."""
    first = normalise(prediction).split(" ", 1)[0]
    right = float(_LABELS.get(first, "") == gold.answers[0].lower())
    return {"em": right, "f1": right, "accuracy": right}


def iirc(prediction: str, gold: Gold) -> Scores:
    """Both readings: em and f1 take the spans as alternatives (DRAGIN, MIND); em_set and f1_set as a set aligned one to
    one (official, IRCoT).
    """
    exact_set, f1_set = drop.score(prediction, gold.answers)
    return {**_span(prediction, gold.answers, polar=True), "em_set": exact_set, "f1_set": f1_set}


RULES: Mapping[str, Rule] = {
    "hotpotqa": hotpotqa,
    "2wikimultihopqa": wiki2,
    "musique": musique,
    "strategyqa": strategyqa,
    "iirc": iirc,
    "scifact": scifact,
    "locomo": musique,
}
"""Dataset → rule; a dataset that is not listed is scored as HotpotQA is."""


def score(dataset: str, prediction: str, gold: Gold, *, abstained: bool = False, reply: str = "") -> Scores:
    """em, f1 and accuracy in [0, 1], and the dataset's own variants. For an unanswerable question only a refusal is
    right.

    reply: reasoning and answer as one text, from which DRAGIN reads StrategyQA's yes or no (em_dragin).
    """
    if not gold.answerable:
        right = float(abstained or says_unknown(prediction))
        return {"em": right, "f1": right, "accuracy": right}
    name = dataset.removesuffix("_open")
    found = RULES.get(name, hotpotqa)(prediction, gold)
    if name == "strategyqa" and reply:
        found["em_dragin"] = float(dragin_strategyqa(reply) == gold.answers[0].lower())
    return found
