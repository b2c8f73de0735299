from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.config import load_config
from mindchat.entities import FILTERS
from mindchat.errors import UsageError
from mindchat.evals.examples import CorpusSpec, Source
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
def test_a_bench_session_reads_only_the_corpus_of_its_question(home: Path, monkeypatch: pytest.MonkeyPatch, kind: str, searched: int) -> None:
    models: list[ScriptedModel] = []

    def load(config: object, progress: object) -> ScriptedModel:
        models.append(ScriptedModel([" Fritz Lang", " Fritz Lang"]))
        return models[-1]

    monkeypatch.setattr(wiring, "load_model", load)
    config = load_config(environ={}, assignments=["engine.policy=once", "layout.repeat=0", "memory.mode=off"]).config
    make: Callable[..., object] = wiring.open_evaluation(config, find_paths())
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
    corpus.write_text('{"id": "x1", "title": "Metropolis", "text": "Metropolis was directed by Fritz Lang."}\n', encoding="utf-8")
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" Fritz Lang"]))
    config = load_config(environ={}, assignments=["engine.policy=once", "memory.mode=off"]).config
    make: Callable[..., object] = wiring.open_evaluation(config, find_paths())
    shown = report(fold_all(make(config, CorpusSpec("open", path=str(corpus))).ask("Who directed Metropolis?")))  # type: ignore[attr-defined]
    assert shown["hops"][0]["passages"] == ["x1"]
    assert [c["quote"] for c in shown["citations"]] == ["Fritz Lang"]
