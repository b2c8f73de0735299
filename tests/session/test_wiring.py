from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.config import load_config
from mindchat.entities import FILTERS
from mindchat.errors import UsageError
from mindchat.lab import workbench
from mindchat.lab.evals.examples import CorpusSpec, Source
from mindchat.models.scripted import ScriptedModel
from mindchat.paths import find_paths
from mindchat.policies import POLICIES
from mindchat.prompts import COMPOSERS
from mindchat.trace import fold_all, report


@pytest.mark.parametrize("table", [POLICIES, FILTERS, COMPOSERS], ids=["policies", "filters", "composers"])
def test_every_entry_of_a_table_is_a_class_that_takes_the_configuration(table: dict[str, str]) -> None:
    for name in table:
        assert wiring.plug(table, name, "plug-in")(load_config(environ={}).config)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="Did you mean dragin"):
        wiring.plug(POLICIES, "draginn", "policy")


def sources() -> tuple[Source, ...]:
    return (
        Source(title="Metropolis", text="Metropolis was directed by Fritz Lang.", pid="p1"),
        Source(title="Fritz Lang", text="Fritz Lang was born in Vienna.", pid="p2"),
    )


@pytest.mark.parametrize(("kind", "searched"), [("own", 1), ("given", 1), ("none", 1)])
def test_a_bench_session_reads_only_the_corpus_of_its_question(
    home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, searched: int
) -> None:
    models: list[ScriptedModel] = []

    def load(config: object, progress: object) -> ScriptedModel:
        models.append(ScriptedModel([" Fritz Lang", " Fritz Lang"]))
        return models[-1]

    monkeypatch.setattr(wiring, "load_model", load)
    config = load_config(environ={}, assignments=["engine.policy=once", "layout.repeat=0", "memory.mode=off"]).config
    make: Callable[..., object] = workbench.open_evaluation(config, find_paths())
    spec = CorpusSpec(kind, sources() if kind != "none" else ())  # type: ignore[arg-type]
    for _ in range(2):
        shown = report(fold_all(make(config, spec).ask("Who directed Metropolis?")))  # type: ignore[attr-defined]
    assert len(models) == 1
    sent = models[0].render(models[0].prompts[-1])
    assert ("directed by Fritz Lang" in sent) == (kind != "none")
    assert shown["counts"]["retrievals"] == searched
    if kind == "given":
        assert shown["context"]["copies"] == [["p1", "p2"]]
    assert not list(find_paths().data.glob("*.db"))


def test_an_open_corpus_is_indexed_once_and_kept(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        '{"id": "x1", "title": "Metropolis", "text": "Metropolis was directed by Fritz Lang."}\n', encoding="utf-8"
    )
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" Fritz Lang"]))
    config = load_config(environ={}, assignments=["engine.policy=once", "memory.mode=off"]).config
    make: Callable[..., object] = workbench.open_evaluation(config, find_paths())
    shown = report(fold_all(make(config, CorpusSpec("open", path=str(corpus))).ask("Who directed Metropolis?")))  # type: ignore[attr-defined]
    assert shown["hops"][0]["passages"] == ["x1"]
    assert [c["quote"] for c in shown["citations"]] == ["Fritz Lang"]


FACTS = ("engine.policy=once", "layout.repeat=0", "memory.filter=none", "memory.audit=0")


def test_the_keeper_of_a_chain_forgets_and_looks_through_its_memory(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" Fritz Lang"] * 9))
    config = load_config(environ={}, assignments=FACTS).config
    bench = workbench.open_chains(find_paths())
    spec = CorpusSpec("own", sources(), memory="a chain")
    (item,) = fold_all(bench.make(config, spec).ask("Who directed Metropolis?")).learned
    assert bench.holds("a chain", "fritz lang")
    assert not bench.holds("another chain", "fritz lang")
    again = fold_all(bench.make(config, spec).ask("Who is the director of Metropolis?"))
    assert [fact.id for hop in again.hops for fact in hop.facts] == [item.fact.id]
    assert bench.forget("another chain", [item.fact.id]) == 0
    assert bench.forget("a chain", [item.fact.id, "zzzzzzz"]) == 1
    gone = fold_all(bench.make(config, spec).ask("Who is the director of Metropolis?"))
    assert [fact.id for hop in gone.hops for fact in hop.facts] == []
    assert gone.refused == (("tombstone", 1),)


def test_a_chain_s_edited_document_withdraws_its_facts_before_the_next_prompt(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" Fritz Lang"] * 9))
    config = load_config(environ={}, assignments=FACTS).config
    bench = workbench.open_chains(find_paths())
    fold_all(bench.make(config, CorpusSpec("own", sources(), memory="c")).ask("Who directed Metropolis?"))
    edited = (Source("Metropolis", "Metropolis was directed by Thea Harbou.", "p1"), sources()[1])
    trace = fold_all(
        bench.make(config, CorpusSpec("own", edited, memory="c")).ask("Who is the director of Metropolis?")
    )
    assert [fact for hop in trace.hops for fact in hop.facts] == []
    assert not any(hop.skipped for hop in trace.hops)
