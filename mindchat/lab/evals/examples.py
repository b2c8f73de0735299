"""Questions with and without their gold, kept apart by type.

Owns: Example (what a system under test may be given), Gold (what only the scorer may see), Item (the pair), CorpusSpec
(where a session searches), passage ids. Does not own: file formats (datasets/), scoring (metrics.py). The gap is
structural: an Example has no field that holds gold, and CorpusSpec is built from an Example alone (oracle contexts
excepted, by name).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.text.clean import clean_line

Context = Literal["retrieved", "given", "none", "oracle"]
CorpusKind = Literal["own", "given", "open", "none"]


class Source(Struct, frozen=True):
    """One passage of a question's context, without judgement."""

    title: str
    text: str
    pid: str
    """Its id in the dataset's corpus file; sessions keep it as passage id."""


class Example(Struct, frozen=True):
    """What a system under test may see of a question: `question` and `context`; `id` and `dataset` name the record."""

    id: str
    dataset: str
    question: str
    context: tuple[Source, ...] = ()


class Support(Struct, frozen=True):
    """One passage that the annotators say is needed; a None pid is matched by title."""

    title: str
    pid: str | None = None


class Gold(Struct, frozen=True):
    """What only the scorer may see."""

    answers: tuple[str, ...]
    """The answer and its aliases: alternatives (IIRC: the spans of the answer)."""
    type: str = ""
    """Reasoning type, number of hops, or label; for tables by type."""
    demonyms: tuple[str, ...] = ()
    """2WikiMultihopQA v1.1: accepted by the official scorer only."""
    supporting: tuple[Support, ...] = ()
    sentences: tuple[tuple[str, str], ...] = ()
    """Supporting sentences: (pid of the passage, or its title where the id is unknown; the sentence's text, "" where
    the passage is missing).
    """
    entities: tuple[str, ...] = ()
    """Names on the reasoning path (titles of supporting passages, objects of gold triples)."""
    facts: tuple[tuple[str, str, str], ...] = ()
    """Gold triples (subject, predicate, object)."""
    steps: tuple[tuple[str, str, str], ...] = ()
    """Single hops (question with #n for earlier answers, answer, pid of its passage or "")."""
    answerable: bool = True


class Item(Struct, frozen=True):
    """A question and its gold."""

    example: Example
    gold: Gold


class CorpusSpec(Struct, frozen=True):
    """Where one session finds its documents; the argument of make_session. Holds no gold.

    own: `passages` are the whole corpus, to be searched. given: `passages` stand in the prompt, in this order. open:
    the corpus file `path` is searched. none: no documents.
    """

    kind: CorpusKind
    passages: tuple[Source, ...] = ()
    path: str = ""
    memory: str = ""
    """Sessions with the same non-empty key share one volatile memory and registry (chains); "": a fresh one for this
    session.
    """


def passage_id(title: str, text: str) -> str:
    """16 hex digits of SHA-1 over the lower-cased word characters of title and text: equal passages have equal ids in
    every file.
    """
    words = "".join(re.findall(r"\w+", f"{title} {text}".lower()))
    return hashlib.sha1(words.encode()).hexdigest()[:16]


def corpus_for(item: Item, context: Context, open_corpus: str = "") -> CorpusSpec:
    """The corpus of one question. Only context "oracle" looks at gold, to choose passages; it is an upper bound and is
    reported as one.
    """
    example = item.example
    if context == "none":
        return CorpusSpec("none")
    if context == "oracle":
        wanted = {s.pid for s in item.gold.supporting} | {s.title for s in item.gold.supporting if s.pid is None}
        return CorpusSpec("given", tuple(s for s in example.context if s.pid in wanted or s.title in wanted))
    if context == "retrieved" and open_corpus:
        return CorpusSpec("open", path=open_corpus)
    if not example.context:
        raise UsageError(
            f"Question {example.id} has no context of its own.",
            "Name a corpus to search: --open CORPUS.jsonl, or use --context none.",
        )
    return CorpusSpec("given" if context == "given" else "own", example.context)


def on_path(titles: Sequence[str], facts: Sequence[tuple[str, str, str]]) -> tuple[str, ...]:
    """Names on the reasoning path, first mention first: titles of supporting passages, then subjects and objects of
    gold triples.
    """
    names = [*titles, *(name for s, _, o in facts for name in (s, o))]
    return tuple(dict.fromkeys(clean_line(name) for name in names if name.strip()))
