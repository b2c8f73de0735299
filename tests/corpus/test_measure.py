from __future__ import annotations

import json
import math

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.measure import grid, latency, load_corpus, load_questions, quality
from mindchat.corpus.memory_index import MemoryIndex
from mindchat.errors import UsageError
from mindchat.values import Query

CORPUS = [("p1", "Poe", "Poe wrote the Raven."), ("p2", "Joyce", "Joyce wrote Ulysses."), ("p3", "Raven", "A raven is a bird.")]


@pytest.fixture
def files(tmp_path):
    corpus, questions = tmp_path / "x.corpus.jsonl", tmp_path / "x.dev.jsonl"
    corpus.write_text("".join(json.dumps({"id": id_, "title": title, "text": text}) + "\n" for id_, title, text in CORPUS))
    rows = [("Who wrote Ulysses?", ["p2"]), ("raven bird", ["p3", "p1"]), ("nothing known", ["p2"]), ("no gold", [])]
    questions.write_text(
        "".join(json.dumps({"question": text, "context": [{"pid": pid, "is_supporting": True} for pid in gold]}) + "\n" for text, gold in rows)
    )
    return corpus, questions


def test_recall_and_ndcg_by_hand(files):
    index, questions = MemoryIndex(load_corpus(files[0])), load_questions(files[1])
    got = quality(index, questions, 1)
    assert got.questions == 3
    assert got.recall == pytest.approx((1 + 0.5 + 0) / 3)
    assert got.ndcg == pytest.approx((1 + 1 + 0) / 3)
    wide = quality(index, questions[1:2], 2)
    assert (wide.recall, wide.ndcg) == (1.0, pytest.approx(1.0))
    assert quality(index, [questions[0]], 3).ndcg == pytest.approx(1 / math.log2(2))


def test_grid_tells_even_from_odd_rows(files):
    cells = list(grid([files], [0.9, 1.2], [0.75], [1.0]))
    assert [(cell.k1, cell.even.questions, cell.odd.questions) for cell in cells] == [(0.9, 2, 1), (1.2, 2, 1)]


def test_other_parameters_equal_a_fresh_index(files):
    passages, section = load_corpus(files[0]), IndexSection(k1=0.3, b=0.1, title_boost=4.0)
    first = MemoryIndex(passages).with_section(section).search(Query("raven wrote"), 3)
    assert first == MemoryIndex(passages, section).search(Query("raven wrote"), 3)


def test_latency_counts_every_question(files):
    got = latency(MemoryIndex(load_corpus(files[0])), load_questions(files[1]))
    assert got.questions == 4
    assert 0 < got.p50 <= got.p95


def test_questions_without_judgements_are_refused(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "x", "context": []}\n')
    with pytest.raises(UsageError):
        load_questions(tmp_path / "q.jsonl")


def test_every_installed_engine_is_measured_beside_ours(files, library, tmp_path):
    from mindchat.corpus.beside import compare

    results = list(compare([files[0]], files[1], library.registry, library.index, tmp_path / "others"))
    assert [result.engine for result in results][:2] == ["mindchat", "whoosh"]
    assert {result.passages for result in results} == {3}
    assert all(result.quality.recall > 0.5 and result.latency.questions == 4 for result in results)
