from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mindchat.errors import UsageError
from mindchat.lab.evals.datasets import DATASETS, load, recognise, sample
from mindchat.lab.evals.examples import CorpusSpec, Example, Gold, Source, corpus_for, passage_id

HOTPOT = [
    {
        "_id": "h1",
        "answer": "Paris",
        "question": "Where is the tower of Eiffel?",
        "supporting_facts": [["Eiffel", 0], ["Eiffel", 1], ["Missing page", 0]],
        "context": [["Eiffel", ["He was an engineer.", "  He built it."]], ["Rome", ["A city."]]],
        "type": "bridge",
        "level": "hard",
    }
]
WIKI2 = [
    {
        "_id": "w1",
        "type": "compositional",
        "question": "Where is the director of X from?",
        "context": [["X (film)", ["X is a film by Y."]], ["Y", ["Y is American."]]],
        "supporting_facts": [["X (film)", 0], ["Y", 0]],
        "evidences": [["X", "director", "Y"], ["Y", "country of citizenship", "American"]],
        "answer": "United States",
        "answer_id": "Q30",
        "entity_ids": "Q1_Q2",
        "evidences_id": [],
    }
]
MUSIQUE = [
    {
        "id": "3hop1__1_2_3",
        "paragraphs": [
            {"idx": 0, "title": "A", "paragraph_text": "A text.", "is_supporting": True},
            {"idx": 1, "title": "B", "paragraph_text": "B text.", "is_supporting": False},
        ],
        "question": "Who?",
        "question_decomposition": [{"id": 1, "question": "A >> x", "answer": "Bob", "paragraph_support_idx": 0}],
        "answer": "Bob",
        "answer_aliases": ["Robert"],
        "answerable": True,
    },
    {
        "id": "3hop1__1_2_3",
        "paragraphs": [{"idx": 0, "title": "A", "paragraph_text": "A text.", "is_supporting": False}],
        "question": "Who?",
        "question_decomposition": [{"id": 1, "question": "A >> x", "answer": "Bob", "paragraph_support_idx": None}],
        "answer": "Bob",
        "answer_aliases": [],
        "answerable": False,
    },
]
STRATEGY = [
    {
        "qid": "s1",
        "term": "Aristotle",
        "description": "d",
        "question": "Did Aristotle use a laptop?",
        "answer": False,
        "facts": ["f"],
        "decomposition": ["When did he live?", "Is #1 late?"],
        "evidence": [[[["Aristotle-1"]], ["operation"]], [["no_evidence", ["Laptop-2"]], ["operation"]]],
    }
]
PARAGRAPHS = {
    "Aristotle-1": {"title": "Aristotle", "content": "He lived long ago."},
    "Laptop-2": {"title": "Laptop", "content": "A computer."},
}
IIRC = [
    {
        "pid": "p1",
        "title": "James",
        "text": "James fought at <a href='Bull Run'>Bull Run</a>. Cats &amp; dogs.",
        "links": [{"target": "Bull Run", "indices": [1, 2]}],
        "questions": [
            {
                "qid": "i1",
                "question": "Who and where?",
                "context": [{"passage": "main", "text": "x"}, {"passage": "Bull Run", "text": "y"}],
                "question_links": ["Bull Run"],
                "answer": {
                    "type": "span",
                    "answer_spans": [{"text": "one", "passage": "main"}, {"text": "two", "passage": "main"}],
                },
            },
            {
                "qid": "i2",
                "question": "How many?",
                "context": [],
                "question_links": [],
                "answer": {"type": "value", "answer_value": "3", "answer_unit": "y"},
            },
            {
                "qid": "i3",
                "question": "Is it?",
                "context": [],
                "question_links": [],
                "answer": {"type": "binary", "answer_value": "yes"},
            },
            {"qid": "i4", "question": "Unknown?", "context": [], "question_links": [], "answer": {"type": "none"}},
        ],
    }
]
NORMALISED = [
    {
        "id": "n1",
        "question": "Q?",
        "answers": ["a", "b"],
        "type": "bridge",
        "context": [
            {"title": "T", "text": "x", "is_supporting": True, "pid": "p"},
            {"title": "U", "text": "y", "is_supporting": False, "pid": "q"},
        ],
        "dataset": "hotpotqa",
        "meta": {"evidences": [["T", "r", "O"]], "supporting_sentences": "SECRET-META"},
    }
]
PLAIN = [
    {"question": "One?", "answer": True},
    {
        "id": "x",
        "question": "Two?",
        "answers": ["2", "two"],
        "type": "numeric",
        "supporting": ["doc"],
        "context": ["plain words"],
    },
]
FILES: list[tuple[str, list[dict[str, Any]], bool]] = [
    ("hotpotqa", HOTPOT, True),
    ("2wikimultihopqa", WIKI2, True),
    ("musique", MUSIQUE, False),
    ("strategyqa", STRATEGY, True),
    ("iirc", IIRC, True),
    ("normalised", NORMALISED, False),
    ("jsonl", PLAIN, False),
]


def put(folder: Path, rows: list[dict[str, Any]], array: bool, name: str = "dev") -> Path:
    path = folder / f"{name}.{'json' if array else 'jsonl'}"
    path.write_text(json.dumps(rows) if array else "\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "rows", "array"), FILES)
def test_every_format_is_recognised_and_loads(
    tmp_path: Path, name: str, rows: list[dict[str, Any]], array: bool
) -> None:
    path = put(tmp_path, rows, array)
    assert recognise(rows[0], path) == name
    items = load(path)
    assert items
    for item in items:
        assert item.gold.answers
        assert item.example.question


def test_the_table_is_complete() -> None:
    assert {name for name, _, _ in FILES} == set(DATASETS)


def test_hotpotqa_joins_sentences_and_finds_support_by_title(tmp_path: Path) -> None:
    (item,) = load(put(tmp_path, HOTPOT, True))
    assert item.example.context[0].text == "He was an engineer. He built it."
    assert item.example.context[0].pid == passage_id("Eiffel", "He was an engineer. He built it.")
    assert [(s.title, s.pid is None) for s in item.gold.supporting] == [("Eiffel", False), ("Missing page", True)]
    assert item.gold.type == "bridge"


def test_2wiki_takes_aliases_and_demonyms_from_beside(tmp_path: Path) -> None:
    path = put(tmp_path, WIKI2, True)
    assert load(path)[0].gold.answers == ("United States",)
    (tmp_path / "id_aliases.json").write_text(
        json.dumps({"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}) + "\n"
    )
    gold = load(path)[0].gold
    assert gold.answers == ("United States", "USA")
    assert gold.demonyms == ("American",)
    assert gold.facts[0] == ("X", "director", "Y")


def test_musique_full_keeps_unanswerable_twins_apart(tmp_path: Path) -> None:
    first, twin = load(put(tmp_path, MUSIQUE, False))
    assert first.gold.answers == ("Bob", "Robert")
    assert first.gold.type == "3hop"
    assert first.gold.steps == (("A >> x", "Bob", first.example.context[0].pid),)
    assert not twin.gold.answerable
    assert twin.example.id != first.example.id


def test_strategyqa_finds_paragraphs_beside(tmp_path: Path) -> None:
    path = put(tmp_path, STRATEGY, True)
    assert load(path)[0].example.context == ()
    (tmp_path / "strategyqa_train_paragraphs.json").write_text(json.dumps(PARAGRAPHS))
    (item,) = load(path)
    assert [source.title for source in item.example.context] == ["Aristotle", "Laptop"]
    assert item.gold.answers == ("no",)
    assert item.gold.type == "2-step"


def test_iirc_answers_of_every_kind(tmp_path: Path) -> None:
    path = put(tmp_path, IIRC, True)
    span, value, binary = load(path)
    assert span.gold.answers == ("one", "two")
    assert span.example.context[0].text == "James fought at Bull Run . Cats & dogs."
    assert (value.gold.type, binary.gold.answers) == ("numeric", ("yes",))
    (tmp_path / "context_articles.json").write_text(json.dumps({"bull run": "<b>A battle.</b>"}))
    linked = load(path)[0]
    assert [source.title for source in linked.example.context] == ["James", "Bull Run"]
    assert all(support.pid for support in linked.gold.supporting)


def test_plain_lines(tmp_path: Path) -> None:
    one, two = load(put(tmp_path, PLAIN, False, "mine"))
    assert (one.example.id, one.gold.answers, one.example.dataset) == ("1", ("yes",), "mine")
    assert two.gold.supporting[0].pid == "doc"
    assert two.example.context[0].text == "plain words"


@pytest.mark.parametrize(
    ("rows", "gold_key"),
    [
        (HOTPOT, "answer"),
        (WIKI2, "answer"),
        (MUSIQUE, "answer"),
        (STRATEGY, "answer"),
        (NORMALISED, "answers"),
        (PLAIN[1:], "answers"),
    ],
)
def test_unlabelled_files_are_refused(tmp_path: Path, rows: list[dict[str, Any]], gold_key: str) -> None:
    bare = [{key: value for key, value in row.items() if key != gold_key} for row in rows]
    with pytest.raises(UsageError, match="no gold answers") as caught:
        load(put(tmp_path, bare, False))
    assert "dev file" in caught.value.hint


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "holds no question"),
        ("{broken", ":1 is not valid JSON"),
        ('{"a": 1}', "no question file"),
        ('{"question": "", "answer": "x"}', "is empty"),
        ('{"id": "1", "question": "a", "answer": "x"}\n{"id": "1", "question": "b", "answer": "x"}', "stands twice"),
        ('[{"_id": "1", "context": [["only title"]], "answer": "x", "question": "q"}]', "is not a hotpotqa file"),
    ],
)
def test_broken_files_are_refused_with_the_reason(tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(body, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none.jsonl")


def test_texts_lose_what_a_terminal_would_obey(tmp_path: Path) -> None:
    (item,) = load(put(tmp_path, [{"question": "a\x1b[31m?", "answer": "x", "context": ["b\x1b]0;t\x07c"]}], False))
    assert item.example.question == "a?"
    assert item.example.context[0].text == "bc"


def test_a_larger_sample_extends_a_smaller_one(questions: Path) -> None:
    items = load(questions)
    small, large = sample(items, 4, 1), sample(items, 9, 1)
    assert large[:4] == small
    assert sample(list(reversed(items)), 4, 1) == small
    assert sample(items, 4, 2) != small
    assert len(sample(items, None, 1)) == len(items)


@pytest.mark.parametrize("context", ["retrieved", "given", "none"])
def test_no_gold_reaches_the_system(tmp_path: Path, context: Any) -> None:
    """What a session is given is the question and a CorpusSpec; neither holds an answer, a judgement or an annotation."""
    rows = [
        {
            **NORMALISED[0],
            "answers": ["SECRET-ANSWER"],
            "type": "SECRET-TYPE",
            "meta": {"evidences": [["SECRET-S", "SECRET-R", "SECRET-O"]]},
        }
    ]
    (item,) = load(put(tmp_path, rows, False))
    given = msgspec.json.encode(corpus_for(item, context)).decode() + item.example.question
    assert "SECRET" not in given
    assert "supporting" not in given
    assert "SECRET" in msgspec.json.encode(item.gold).decode()
    fields = {field.name for struct in (Example, Source, CorpusSpec) for field in msgspec.structs.fields(struct)}
    assert fields == {
        "id",
        "dataset",
        "question",
        "context",
        "title",
        "text",
        "pid",
        "kind",
        "passages",
        "path",
        "memory",
    }
    assert not fields & {field.name for field in msgspec.structs.fields(Gold)}


def test_oracle_context_is_supporting_passages_only(tmp_path: Path) -> None:
    (item,) = load(put(tmp_path, NORMALISED, False))
    assert [source.pid for source in corpus_for(item, "oracle").passages] == ["p"]
    assert corpus_for(item, "retrieved", "c.jsonl").path == "c.jsonl"
