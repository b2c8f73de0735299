from __future__ import annotations

import json
import math

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.errors import UsageError
from mindchat.lab.bench.retrieval_quality import grid, latency, load_corpus, load_questions, quality
from mindchat.values import Query

pytestmark = pytest.mark.slow

CORPUS = [
    ("p1", "Poe", "Poe wrote the Raven."),
    ("p2", "Joyce", "Joyce wrote Ulysses."),
    ("p3", "Raven", "A raven is a bird."),
]


@pytest.fixture
def files(tmp_path):
    corpus, questions = tmp_path / "x.corpus.jsonl", tmp_path / "x.dev.jsonl"
    corpus.write_text(
        "".join(json.dumps({"id": id_, "title": title, "text": text}) + "\n" for id_, title, text in CORPUS)
    )
    rows = [("Who wrote Ulysses?", ["p2"]), ("raven bird", ["p3", "p1"]), ("nothing known", ["p2"]), ("no gold", [])]
    questions.write_text(
        "".join(
            json.dumps({"question": text, "context": [{"pid": pid, "is_supporting": True} for pid in gold]}) + "\n"
            for text, gold in rows
        )
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
    from mindchat.lab.bench.search_engines import compare

    told: list[str] = []

    def make(ranker: str) -> Index:
        return Index(library.folder, library.section, library.registry, ranker=ranker)

    found = compare(
        [files[0]], [files[1]], library.registry, make, tmp_path / "others", told=lambda what, *_: told.append(what)
    )
    assert [row.engine for row in found.rows][:4] == [
        "mindchat",
        "mindchat without links",
        "mindchat pagerank",
        "whoosh",
    ]
    assert found.passages == 3
    for row in found.rows:
        assert row.recall_3 == row.recall_5 == row.recall_10 > 0.5
        assert min(row.even_5, row.odd_5) <= row.recall_5 <= max(row.even_5, row.odd_5)
        assert (row.questions, row.asked) == (files[1].name, 4)
        assert row.cpu_p50 > 0
        assert 0 <= row.all_5 <= 1
    ours, plain = found.rows[0], found.rows[3]
    assert found.ratios["indexing"] == pytest.approx(plain.index_seconds / ours.index_seconds)
    assert found.ratios["search_p50"] == pytest.approx(plain.p50 / ours.p50)
    assert 0 < found.open_seconds < 10
    assert 0 < found.names.cpu < ours.index_seconds
    assert told[:2] == ["indexing with mindchat", "indexing with whoosh"]


def test_with_an_encoder_there_is_a_row_with_dense_and_its_vectors_are_kept(files, library, tmp_path):
    from mindchat.lab.bench.search_engines import compare

    from ...corpus.encoders import Here

    here = Here()
    for run, made in enumerate((3, 0)):

        def make(ranker: str, run: int = run) -> Index:
            place = tmp_path / f"index{run}"
            return Index(place, library.section, library.registry, ranker=ranker, encoder=here, vectors=tmp_path / "v")

        found = compare([files[0]], [files[1]], library.registry, make, tmp_path / f"others{run}", encoder=here)
        rows = {row.engine: row for row in found.rows}
        assert (found.made, rows["mindchat with dense"].asked) == (made, 4)
        assert rows["mindchat with dense"].index_seconds > rows["mindchat"].index_seconds


def test_the_command_gives_one_json_object(files, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from mindchat.lab.commands.bench import app

    monkeypatch.setenv("MINDCHAT_HOME", str(tmp_path / "home"))
    result = CliRunner().invoke(app, ["retrieve", str(files[0]), "--questions", str(files[1]), "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert {"engine", "recall@3", "recall@5", "recall@10", "all@5", "p50", "p95", "index_seconds"} <= rows[0].keys()
