"""Questions with and without their documents: the material for fitting and testing answerability. No model is asked.

Owns: the kinds of case, how each is made from the datasets and answerability.toml, their features. Does not own: the
fit (answerable_fit), the features (mindchat.evidence), reading datasets (datasets/). gold_out: the same corpus without
any passage that supports a question of the file. foreign: the questions of one dataset over the corpus of another.
lower: typed without capitals. untitled: passages are called notes-0001.txt. single: one step, from 2Wiki's gold
triples, or a step that the article does not take. define: "What is …?" of a title. claims: "Is it true that …?" of
SciFact's claims, which have no names.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.evidence import Asking, asking, select
from mindchat.evidence.features import features
from mindchat.lab.evals.hop_questions import WORDINGS, ask
from mindchat.paths import packaged
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage, Query, WordCounts

SHOWN = 5
"""Passages that a question is judged by."""
BUDGET = 280
"""Words of evidence."""
HAND = tomllib.loads(Path(__file__).with_name("answerability.toml").read_text(encoding="utf-8"))
_NOTE = re.compile(r"\s*\([^()]*\)\s*$")
_PERSON = ("date of birth", "country of citizenship", "father", "place of birth")
_MOST_A_RELATION = 25


class Searchable(Protocol):
    """What a case is searched in."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """As ports.Retriever."""
        ...

    def count_words(self, text: str) -> WordCounts | None:
        """As ports.CountsWords."""
        ...


MakeIndex = Callable[[Sequence[Passage]], Searchable]


class Case(Struct, frozen=True):
    """One question as the search sees it."""

    set: str
    kind: str
    """answerable, or why not: gold_out, foreign, relation, nothing."""
    row: int
    """Its number in its set; even rows set the cut, odd rows report."""
    question: str
    group: str
    """Cases of one group stay in one fold."""
    features: dict[str, float]
    fitted: bool = True
    """Whether it may be part of a fit; hand-written ones never are."""

    @property
    def answerable(self) -> bool:
        """The label."""
        return self.kind == "answerable"


class _Ask(Struct, frozen=True):
    set: str
    kind: str
    row: int
    question: str
    group: str
    fitted: bool = True


def cases(data: Path, make: MakeIndex = MemoryIndex, seed: int = 7) -> Iterator[Case]:
    """All cases of a data folder and the packaged demo. `make` is the search: what a fit is to hold for."""
    wiki, hotpot, scifact = (_corpus(data, name) for name in ("2wikimultihopqa", "hotpotqa", "scifact"))
    rows = {
        name: _rows(data, name)
        for name in ("2wikimultihopqa_open.dev", "2wikimultihopqa.dev", "hotpotqa.dev", "scifact.dev")
    }
    plain = {"2wiki": (wiki, rows["2wikimultihopqa_open.dev"]), "hotpotqa": (hotpot, rows["hotpotqa.dev"])}
    for name, (corpus, questions) in plain.items():
        yield from _with_and_without(name, corpus, questions, make)
    yield from _judged(
        make(scifact),
        [_Ask("scifact", "foreign", n, r["question"], r["question"]) for n, r in enumerate(rows["hotpotqa.dev"])],
    )
    claims = [{**row, "question": f"Is it true that {row['question'].rstrip('.')}?"} for row in rows["scifact.dev"]]
    yield from _judged(
        make(scifact), [_Ask("claims", "answerable", n, r["question"], r["question"]) for n, r in enumerate(claims)]
    )
    yield from _judged(
        make(_without(scifact, claims)),
        [_Ask("claims", "gold_out", n, r["question"], r["question"]) for n, r in enumerate(claims)],
    )
    single = _single(wiki, [*rows["2wikimultihopqa_open.dev"], *rows["2wikimultihopqa.dev"]], random.Random(seed))
    for prefix, corpus in (("", wiki), ("untitled ", _untitled(wiki))):
        yield from _judged(make(corpus), [msgspec.structs.replace(one, set=f"{prefix}{one.set}") for one in single])
    yield from _judged(make(wiki), _hand("2wikimultihopqa", "2wiki"))
    yield from _judged(make(hotpot), _hand("hotpotqa", "hotpotqa"))
    yield from _define(hotpot, make, random.Random(seed))
    yield from _demo(make, random.Random(seed).sample(rows["2wikimultihopqa_open.dev"], 50))


def _with_and_without(
    name: str, corpus: Sequence[Passage], questions: Sequence[dict[str, Any]], make: MakeIndex
) -> Iterator[Case]:
    """One dataset: as it is, typed without capitals, and over files without titles; each with its documents and
    without.
    """
    for untitled in (False, True):
        whole = _untitled(corpus) if untitled else corpus
        for kind, passages in (("answerable", whole), ("gold_out", _without(whole, questions))):
            index = make(passages)
            prefix = "untitled " if untitled else ""
            asked = [_Ask(f"{prefix}{name}", kind, n, r["question"], r["question"]) for n, r in enumerate(questions)]
            yield from _judged(index, asked)
            if not untitled:
                yield from _judged(
                    index, [_Ask(f"lower {name}", kind, one.row, one.question.lower(), one.group) for one in asked]
                )


def _demo(make: MakeIndex, strangers: Sequence[dict[str, Any]]) -> Iterator[Case]:
    """The packaged demo: its questions with and without their documents, and strangers' questions."""
    root = packaged("corpora", "demo")
    corpus = []
    for path in sorted(root.glob("*/*.md")):
        text, id_ = path.read_text(encoding="utf-8"), path.relative_to(root).with_suffix("").as_posix()
        corpus.append(Passage(id_, id_, text.partition("\n")[0].lstrip("# ").strip(), text, 0, len(text)))
    index = make(corpus)
    for n, line in enumerate((root / "questions.jsonl").read_bytes().splitlines()):
        row = decode_json(line)
        yield from _judged(index, [_Ask("demo", "answerable", n, row["question"], row["question"])])
        left = [passage for passage in corpus if passage.id not in row["supporting"]]
        yield from _judged(make(left), [_Ask("demo", "gold_out", n, row["question"], row["question"])])
    yield from _judged(
        index, [_Ask("demo", "foreign", n, row["question"], row["question"]) for n, row in enumerate(strangers)]
    )


def _single(corpus: Sequence[Passage], rows: Sequence[dict[str, Any]], rng: random.Random) -> list[_Ask]:
    """Gold triples whose passage states the object, and steps of the same subjects that their article does not take."""
    by_title: dict[str, list[str]] = {}
    for passage in corpus:
        by_title.setdefault(passage.title, []).append(passage.text)
    triples = list(
        dict.fromkeys((s, p, o) for row in rows for s, p, o in row["meta"].get("evidences", ()) if s in by_title)
    )
    found: list[_Ask] = []
    taken: dict[str, int] = {}
    for subject, relation, told in rng.sample(triples, len(triples)):
        stated = any(told.casefold() in text.casefold() for text in by_title[subject])
        if relation in WORDINGS and stated and taken.get(relation, 0) < _MOST_A_RELATION:
            taken[relation] = taken.get(relation, 0) + 1
            found.append(
                _Ask(
                    "single",
                    "answerable",
                    len(found),
                    ask(_NOTE.sub("", subject), relation, again=bool(rng.getrandbits(1))),
                    subject,
                )
            )
    pools = {
        "person": sorted({s for s, p, _ in triples if p in _PERSON}),
        "film": sorted({s for s, p, _ in triples if p == "director"}),
    }
    unasked = 0
    for pool, subjects in pools.items():
        steps = HAND["unasked"][pool]
        for subject in rng.sample(subjects, min(len(subjects), 170)):
            fitting = [
                step
                for step, words in steps.items()
                if not any(re.search(words, text, re.IGNORECASE) for text in by_title[subject])
            ]
            if fitting:
                found.append(
                    _Ask("single", "relation", unasked, rng.choice(fitting).format(s=_NOTE.sub("", subject)), subject)
                )
                unasked += 1
    return found


def _define(corpus: Sequence[Passage], make: MakeIndex, rng: random.Random) -> Iterator[Case]:
    """What is …? Tell me about …: of random titles, with their passages and without."""
    chosen = rng.sample([p for p in corpus if len(p.text.split()) > 25 and "disambiguation" not in p.title], 120)
    names = [_NOTE.sub("", passage.title) for passage in chosen]
    wordings = [rng.choice(("What is {s}?", "Who is {s}?", "Tell me about {s}.", "{s}")) for _ in names]
    asked = [(n, wording.format(s=name), name) for n, (wording, name) in enumerate(zip(wordings, names, strict=True))]
    gone = {name.casefold() for name in names}
    for prefix, whole in (("", list(corpus)), ("untitled ", _untitled(corpus))):
        left = [
            shown
            for shown, known in zip(whole, corpus, strict=True)
            if _NOTE.sub("", known.title).casefold() not in gone
        ]
        for kind, passages in (("answerable", whole), ("gold_out", left)):
            yield from _judged(
                make(passages), [_Ask(f"{prefix}define", kind, n, question, name) for n, question, name in asked]
            )


def _hand(corpus: str, name: str) -> list[_Ask]:
    kinds = ("relation", "nothing")
    return [
        _Ask(name, kind, n, question, question, False)
        for kind in kinds
        for n, question in enumerate(HAND[kind][corpus])
    ]


def _judged(index: Searchable, asked: Sequence[_Ask]) -> Iterator[Case]:
    english: Asking = asking("en")
    for one in asked:
        found = index.search(Query(one.question), SHOWN)
        chosen = select(one.question, found, BUDGET, english)
        told = features(one.question, found, chosen, index.count_words(one.question), english)
        yield Case(one.set, one.kind, one.row, one.question, one.group.casefold(), told, one.fitted)


def _without(corpus: Sequence[Passage], questions: Sequence[dict[str, Any]]) -> list[Passage]:
    """The corpus without what supports any of the questions."""
    gold = {source["pid"] for row in questions for source in row["context"] if source.get("is_supporting")}
    return [passage for passage in corpus if passage.id not in gold]


def _untitled(corpus: Sequence[Passage]) -> list[Passage]:
    return [msgspec.structs.replace(passage, title=f"notes-{number:04d}.txt") for number, passage in enumerate(corpus)]


def _corpus(data: Path, name: str) -> list[Passage]:
    rows = _rows(data, f"{name}.corpus")
    return [Passage(row["id"], f"{name}#{row['id']}", row["title"], row["text"], 0, len(row["text"])) for row in rows]


def _rows(data: Path, name: str) -> list[dict[str, Any]]:
    return [decode_json(line) for line in (data / f"{name}.jsonl").read_bytes().splitlines() if line.strip()]
