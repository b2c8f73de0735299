"""The whole way on a real model: SmolLM2 over the demo corpus, from the question to the contract's object."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.config import load_config
from mindchat.events import LAST, PromptPrefilled, from_json, to_json
from mindchat.paths import find_paths
from mindchat.trace import fold_all, report

pytestmark = pytest.mark.model
QUESTION = "Who is the paternal grandfather of Charles Bretagne Marie de La Trémoille?"


@pytest.fixture(scope="module")
def turns(smollm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """One turn of each policy that a first user meets, and `mind` twice."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINDCHAT_HOME", str(tmp_path_factory.mktemp("small")))
        found: dict[str, list[object]] = {}
        for name in ("once", "mind", "mind again"):
            # limits keep a talkative small model within seconds
            assignments = [
                f"model.name={smollm_folder}",
                f"engine.policy={name.split()[0]}",
                "engine.max_hops=2",
                "engine.max_sentences=3",
            ]
            config = load_config(
                environ={}, assignments=[*assignments, "engine.sentence_tokens=24", "memory.mode=off"]
            ).config
            found[name] = list(wiring.open_session(config, find_paths(), incognito=True).ask(QUESTION))
        return found


def test_a_turn_ends_in_an_answer_and_nothing_follows(turns: dict[str, list[object]]) -> None:
    for events in turns.values():
        assert [type(event).__name__ for event in events if isinstance(event, LAST)] == ["AnswerReady"]
        assert isinstance(events[-1], LAST)


def test_events_survive_the_codec(turns: dict[str, list[object]]) -> None:
    for events in turns.values():
        assert [from_json(to_json(event)) for event in events] == events  # type: ignore[arg-type]


def test_every_citation_quotes_its_document(turns: dict[str, list[object]], home: Path) -> None:
    for events in turns.values():
        trace = fold_all(events)  # type: ignore[arg-type]
        passages = {passage.id: passage for passage in trace.passages}
        assert trace.answer is not None
        for citation in trace.answer.citations:
            passage = passages[citation.passage]
            assert passage.text[citation.start - passage.start : citation.end - passage.start] == citation.quote


def test_theta_and_scores_recompute_from_the_event(turns: dict[str, list[object]]) -> None:
    judged = [view.verdict for view in fold_all(turns["mind"]).sentences]  # type: ignore[arg-type]
    assert judged
    for verdict in judged:
        for word in verdict.words:
            factor = 1.0 if word.content and not word.anchor else 0.0
            assert word.score == pytest.approx((word.entropy or 0.0) * (word.attention or 0.0) * factor, abs=1e-6)
        terms = dict(verdict.terms)
        if "alpha" in terms:
            theta = terms["alpha"] * terms["mean_entropy"] + terms["beta"] * terms["mean_attention"]
            assert verdict.threshold == pytest.approx(theta, abs=1e-6)


def _untimed(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: _untimed(item)
            for key, item in value.items()
            if key not in ("timing", "seconds", "first_token_seconds")
        }
    return [_untimed(item) for item in value] if isinstance(value, list) else value


def test_two_equal_turns_differ_in_timings_only(turns: dict[str, list[object]]) -> None:
    first, second = (_untimed(json.loads(json.dumps(report(fold_all(turns[name]))))) for name in ("mind", "mind again"))  # type: ignore[arg-type]
    assert first == second


@pytest.mark.parametrize(("policy", "least"), [("once", 4), ("mind", 200)])
def test_what_was_read_ahead_is_cached_in_the_first_prompt(
    smollm_folder: Path, home: Path, policy: str, least: int
) -> None:
    settings = [
        f"model.name={smollm_folder}",
        f"engine.policy={policy}",
        "memory.mode=off",
        "engine.max_sentences=1",
        "engine.sentence_tokens=4",
    ]
    session = wiring.open_session(load_config(environ={}, assignments=settings).config, find_paths(), incognito=True)
    assert session.read_ahead() == 0, "no model yet"
    list(session.load())
    known = session.read_ahead()
    assert known >= least
    first = next(event for event in session.ask(QUESTION) if isinstance(event, PromptPrefilled))
    assert first.cached >= known
    assert first.total > known
