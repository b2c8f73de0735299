"""Supporting facts and joint scores of HotpotQA and 2WikiMultihopQA: is the answer right, and for the right sentences?

Owns: the official set scores over sentences, their product with the answer's, and reading a turn's citations as
predicted sentences.
Does not own: answer metrics (metrics.py), citation precision by passage (behaviour.py). Source: hotpot_evaluate_v1.py
(Yang et al. 2018). MindChat is not trained to list supporting facts; what it cites is taken as its list, so recall is
bounded by how little a short answer needs to cite.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet

from mindchat.lab.evals.examples import Example, Gold
from mindchat.lab.evals.metrics import exact, harmonic, overlap
from mindchat.text.language import language
from mindchat.trace import Trace


def supporting_facts(predicted: AbstractSet[Hashable], gold: AbstractSet[Hashable]) -> tuple[float, float, float]:
    """(EM, precision, recall) of a set of sentences; EM asks for equal sets. An empty prediction has precision 0, as in
    the official script.
    """
    right = len(predicted & gold)
    precision = right / len(predicted) if predicted else 0.0
    recall = right / len(gold) if gold else 0.0
    return float(predicted == gold), precision, recall


def joint(prediction: str, gold: Gold, facts: tuple[float, float, float]) -> dict[str, float]:
    """sp_em, sp_f1, joint_em, joint_f1: precisions and recalls of answer and facts are multiplied before F1 is taken;
    the best alternative counts.
    """
    same, precision, recall = facts
    best_em, best_f1 = 0.0, 0.0
    for answer in (*gold.answers, *gold.demonyms):
        p, r = overlap(prediction, answer, polar=True)
        best_em = max(best_em, exact(prediction, answer) * same)
        best_f1 = max(best_f1, harmonic(p * precision, r * recall))
    return {"sp_em": same, "sp_f1": harmonic(precision, recall), "joint_em": best_em, "joint_f1": best_f1}


def cited_sentences(trace: Trace, example: Example, gold: Gold) -> set[Hashable]:
    """What the answer cites, as sentences: a gold sentence by its number, any other by its passage and where it starts."""
    texts = {source.pid: source.text for source in example.context} | {
        passage.id: passage.text for passage in trace.passages
    }
    found: set[Hashable] = set()
    for citation in trace.answer.citations if trace.answer else ():
        text = texts.get(citation.passage, "")
        at = text.find(citation.quote) if citation.quote else -1
        if at >= 0:
            found.add(_sentence(citation.passage, text, at, gold))
        else:
            found.add((citation.passage, -1))
    return found


def _sentence(pid: str, text: str, at: int, gold: Gold) -> Hashable:
    for number, (where, words) in enumerate(gold.sentences):
        start = text.find(words) if where == pid and words else -1
        if 0 <= start <= at < start + len(words):
            return number
    start = 0
    for sentence in language("en").sentences(text):
        if at < start + len(sentence):
            break
        start += len(sentence)
    return pid, start


def judge(trace: Trace, prediction: str, example: Example, gold: Gold) -> Mapping[str, float]:
    """The four scores; empty where the gold names no sentences."""
    if not gold.sentences:
        return {}
    return joint(
        prediction, gold, supporting_facts(cited_sentences(trace, example, gold), set(range(len(gold.sentences))))
    )
