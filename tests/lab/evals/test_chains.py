from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.errors import UsageError
from mindchat.lab.evals import chain_report
from mindchat.lab.evals.arms import Arm, expand
from mindchat.lab.evals.chain_records import as_lines, read_chain_records
from mindchat.lab.evals.chain_run import (
    ChainAsked,
    ChainDone,
    _judged,
    ask_chain,
    evaluate_chains,
    memory_key,
    same,
    same_value,
)
from mindchat.lab.evals.chains import Chain, build, describe, hops, planted, shared_needs
from mindchat.lab.evals.datasets import load
from mindchat.lab.evals.examples import CorpusSpec, Item
from mindchat.lab.evals.hop_questions import ask, fill, reword
from mindchat.ports import NEVER, Cancel
from mindchat.values import Answer, Fact, Passage, Query


def rows() -> Iterator[dict[str, Any]]:
    for n in range(16):
        film, director, country = f"Film Nr{n}", f"Director Nr{n // 2}", f"Country Nr{n // 2}"
        yield {
            "id": f"w{n}",
            "question": f"What is the nationality of the director of {film}?",
            "answers": [country],
            "type": "compositional",
            "context": [
                {"title": film, "text": f"{film} was directed by {director}.", "is_supporting": True, "pid": f"f{n}"},
                {
                    "title": director,
                    "text": f"{director} comes from {country}.",
                    "is_supporting": True,
                    "pid": f"d{n // 2}",
                },
                {"title": "Noise", "text": f"Nothing about {n}.", "is_supporting": False, "pid": f"n{n}"},
            ],
            "dataset": "2wikimultihopqa",
            "meta": {"evidences": [[film, "director", director], [director, "country of citizenship", country]]},
        }


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    path = tmp_path / "wiki.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows()))
    return load(path)


class Rememberer:
    """Reads "X was directed by Y." and "X comes from Y."; remembers them under the corpus's memory key; serves what it
    remembers.
    """

    stores: dict[str, dict[str, tuple[str, Passage]]]

    def __init__(
        self, config: Config, corpus: CorpusSpec, stores: dict[str, dict[str, tuple[str, Passage]]], withdraws: bool
    ) -> None:
        self.config, self.corpus = config, corpus
        fresh: dict[str, tuple[str, Passage]] = {}
        self.store = stores.setdefault(corpus.memory, {}) if corpus.memory else fresh
        if withdraws:
            texts = {source.pid: source.text for source in corpus.passages}
            for key in [key for key, (_, p) in self.store.items() if texts.get(p.id) != p.text]:
                del self.store[key]
        self.n = 0

    def look(self, subject: str, verb: str) -> Iterator[Any]:
        """Events of one hop, then the object found."""
        self.n += 1
        yield ev.QueryFormed(Query(f"{subject} {verb}"), self.n)
        key, on = f"{subject} {verb}", self.config.memory.mode == "on"
        predicate = "director" if verb == "was directed by" else "country_of_citizenship"
        if on and key in self.store:
            obj, passage = self.store[key]
            yield ev.FactsRecalled((Fact(key, subject, predicate, obj, 0.95),))
            yield ev.SearchSkipped((passage,), "known")
            yield obj
            return
        found = [s for s in self.corpus.passages if s.text.startswith(f"{subject} {verb}")]
        passages = tuple(Passage(s.pid, s.pid, s.title, s.text, 0, len(s.text), 1.0, 1) for s in found[:1])
        yield ev.PassagesFound(subject, passages, len(passages))
        yield ev.ModelAsked("draft", 10, 0, 5)
        obj = passages[0].text.removeprefix(f"{subject} {verb} ").rstrip(".") if passages else ""
        if on and passages:
            self.store[key] = (obj, passages[0])
            yield ev.FactsLearned((ev.FactLearned(Fact(key, subject, predicate, obj, 0.95), True),))
        yield obj

    def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        yield ev.TurnStarted(question, question, "scripted", "mind", "none", 0, "user", as_="same")
        subject = question.rstrip("?").replace("'s country of citizenship", "").rpartition("Nr")
        name = f"{'Film' if 'Film' in question else 'Director'} Nr{subject[2]}"
        verbs = ["was directed by"] if "Film" in question else ["comes from"]
        if "nationality of the director" in question:
            verbs = ["was directed by", "comes from"]
        for verb in verbs:
            *news, name = list(self.look(name, verb))
            yield from news
        yield ev.AnswerReady(Answer(name, name, not name), "answered")


def maker(withdraws: bool = True) -> Any:
    stores: dict[str, dict[str, tuple[str, Passage]]] = {}
    return lambda config, corpus: Rememberer(config, corpus, stores, withdraws)


def arms() -> tuple[Arm, ...]:
    return expand(Config(), {"memory.mode": ["on", "off"]})


def of_kind(chains: tuple[Chain, ...], kind: str) -> list[Chain]:
    return [chain for chain in chains if chain.kind == kind]


def test_wordings() -> None:
    assert ask("X", "director") == "Who directed X?"
    assert ask("X", "director", again=True) == "Who is the director of X?"
    assert ask("X", "made up relation") == "What is the made up relation of X?"
    assert reword("Who directed X?") == "Who is the director of X?"
    assert reword("Why so?") == "Please tell me: why so?"
    assert fill("#1 >> place of birth", ("Jane Siberry",)) == "Where was Jane Siberry born?"
    assert fill("who won in #2", ("a", "Rome")) == "Who won in Rome?"
    assert fill("what of #3", ("a",)) == "What of #3?"


def test_a_shared_chain_is_hops_then_the_question_then_a_sibling(items: list[Item]) -> None:
    chains = build(items, 8, seed=1)
    found = {kind: len(of_kind(chains, kind)) for kind in ("shared", "edited", "forgotten", "control")}
    assert found == {"shared": 4, "edited": 2, "forgotten": 1, "control": 1}
    for chain in of_kind(chains, "shared"):
        assert [turn.kind for turn in chain.turns] == ["hop", "hop", "full", "sibling", "reworded"]
        assert [len(shared_needs(chain, n)) for n in range(5)] == [0, 0, 2, 1, 1]
        assert 3 <= len(chain.turns) <= 5
        for turn in chain.turns:
            pids = {source.pid for source in chain.passages}
            assert all(need.pid in pids for need in turn.needs)


def test_controls_share_no_fact_and_no_name(items: list[Item]) -> None:
    for chain in of_kind(build(items, 8, seed=1), "control"):
        assert len(chain.turns) >= 3
        assert all(not shared_needs(chain, n) for n in range(len(chain.turns)))
        names = [
            name
            for turn in chain.turns
            for need in turn.needs
            for name in {need.subject, need.object} - {turn.needs[0].object}
        ]
        assert len(names) == len(set(names))


def test_an_edit_changes_the_document_and_the_gold_from_its_turn_on(items: list[Item]) -> None:
    for chain in of_kind(build(items, 8, seed=1), "edited"):
        edit = chain.edit
        assert edit is not None
        before = {source.pid: source.text for source in chain.passages_at(edit.before - 1)}
        after = {source.pid: source.text for source in chain.passages_at(edit.before)}
        assert edit.old in before[edit.pid]
        assert edit.new in after[edit.pid]
        assert edit.old not in " ".join(after.values())
        assert {pid for pid in before if before[pid] != after[pid]} == {edit.pid}
        assert chain.turns[edit.before].answers == (edit.new,)
        assert shared_needs(chain, edit.before) == ()
        assert chain.turns[-1].answers == (edit.new,)


def test_building_is_deterministic_and_names_what_it_offers(items: list[Item]) -> None:
    assert build(items, 6, seed=2) == build(items, 6, seed=2)
    offer = describe(build(items, 4, seed=2, edited=0, forgotten=0, control=0))
    assert offer == {"chains": 4, "turns": 20, "needs": 28, "repeated": 16, "repeated_share": 16 / 28}


def test_questions_without_hops_are_refused(items: list[Item], questions: Path) -> None:
    plain = questions.parent / "plain.jsonl"
    plain.write_text('{"question": "q?", "answer": "a"}')
    with pytest.raises(UsageError, match="names its single hops"):
        build(load(plain), 3)
    assert hops(load(plain)[0]) == ()


def test_musique_steps_become_hops(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    steps = [
        {"question": "Song >> performer", "answer": "Jane", "support_pid": "p"},
        {"question": "Where was #1 born?", "answer": "Toronto", "support_pid": "q"},
    ]
    row = {
        "id": "m",
        "question": "Q?",
        "answers": ["Toronto"],
        "type": "2hop",
        "dataset": "musique",
        "meta": {"decomposition": steps},
    }
    row["context"] = [{"title": "S", "text": "Jane sang.", "pid": "p"}, {"title": "J", "text": "Toronto.", "pid": "q"}]
    path.write_text(json.dumps(row))
    found = hops(load(path)[0])
    assert [question for question, _ in found] == ["Who performed Song?", "Where was Jane born?"]
    assert [(need.subject, need.object, need.pid) for _, need in found] == [
        ("Song", "Jane", "p"),
        ("Where was Jane born?", "Toronto", "q"),
    ]


def test_names_agree_loosely() -> None:
    assert same("Fritz Lang", "Lang")
    assert same("Metropolis (1927 film)", "metropolis")
    assert not same("Lang", "Langley")
    assert not same("", "x")


def test_memory_on_against_off(items: list[Item], tmp_path: Path) -> None:
    chains = build(items, 8, seed=1)
    events = list(evaluate_chains(maker(), chains, arms(), out=tmp_path / "out"))
    last = events[-1]
    assert isinstance(last, ChainDone)
    assert (last.done, last.total) == (16, 16)
    found = chain_report.write(tmp_path / "out")
    on = next(arm for arm in found.arms if arm.kind == "shared" and "memory=off" not in arm.arm)
    assert (on.repeated, on.exposed, on.stored, on.hits) == (16, 16, 16, 16)
    assert on.hit_rate.mean == on.store_recall.mean == 1.0
    assert (on.skips, on.wrong_skips, on.stale) == (16, 0, 0)
    assert on.em.mean == 1.0
    assert on.learned["wrong"] == on.learned["unknown"] == 0
    saving = next(one for one in found.savings if one.kind == "shared")
    assert saving.saved["retrievals"].mean == pytest.approx(16 / 28)
    assert saving.oracle == pytest.approx(16 / 28, abs=1e-4)
    assert saving.share_of_oracle == pytest.approx(1.0, abs=1e-3)
    assert saving.f1.mean == 0.0
    control = next(one for one in found.savings if one.kind == "control")
    assert control.saved["retrievals"].mean == 0.0
    edited = next(arm for arm in found.arms if arm.kind == "edited" and "memory=off" not in arm.arm)
    assert (edited.stale, edited.em.mean) == (0, 1.0)
    assert found.gates == {"stale_served": 0, "forgotten_served": 0, "secrets_stored": 0}
    assert found.tried["edited_after_learning"] == len(of_kind(chains, "edited"))
    text = (tmp_path / "out" / "chains.md").read_text()
    assert "Saved by memory" in text
    facts = list(as_lines(read_chain_records(tmp_path / "out")))
    assert len(facts) >= 20
    assert {fact["judged"] for fact in facts} == {"right"}


def test_a_memory_that_does_not_withdraw_is_caught(items: list[Item], tmp_path: Path) -> None:
    chains = tuple(of_kind(build(items, 8, seed=1), "edited"))
    list(evaluate_chains(maker(withdraws=False), chains, arms()[:1], out=tmp_path / "out"))
    arm, _ = chain_report.write(tmp_path / "out").arms
    assert arm.stale > 0
    assert arm.wrong_skips >= 0
    assert arm.em.mean < 1.0


def test_wrong_skips_and_wrong_facts_are_counted(items: list[Item]) -> None:
    chain = of_kind(build(items, 8, seed=1), "control")[0]

    class Liar(Rememberer):
        def look(self, subject: str, verb: str) -> Iterator[Any]:
            self.n += 1
            lie = Fact(f"of {subject}", subject, "director", "Somebody Else", 0.95)
            yield ev.QueryFormed(Query(subject), self.n)
            yield ev.FactsRecalled((lie,))
            yield ev.SearchSkipped((Passage("zzz", "zzz", "", "text", 0, 4),), "known")
            yield ev.FactsLearned((ev.FactLearned(lie, True),))
            yield "Somebody Else"

    record = ask_chain(lambda config, corpus: Liar(config, corpus, {}, True), arms()[0], chain, "chain")
    questions = [turn for turn in record.turns if turn.kind == "control"]
    assert len(questions) == 3
    assert all(turn.wrong_skips == turn.skips == 2 for turn in questions)
    assert [fact.judged for turn in questions for fact in turn.learned].count("wrong") == len(questions)
    assert [fact.judged for turn in questions for fact in turn.served].count("wrong") == len(questions)
    assert all(turn.em == 0.0 for turn in questions)


def test_regimes_share_memory_as_named(items: list[Item], tmp_path: Path) -> None:
    chain, arm = build(items, 4, seed=1, edited=0, forgotten=0, control=0)[0], arms()[0]
    assert memory_key(arm, chain, "turn") == ""
    assert memory_key(arm, chain, "chain") == f"{arm.name}/{chain.id}"
    assert memory_key(arm, chain, "set") == arm.name
    reset = ask_chain(maker(), arm, chain, "turn")
    assert sum(turn.hits for turn in reset.turns) == 0


def test_chains_resume_at_the_next_whole_chain(items: list[Item], tmp_path: Path) -> None:
    chains, out = build(items, 4, seed=1), tmp_path / "out"
    stream = evaluate_chains(maker(), chains, arms(), out=out)
    for _ in range(6):  # each chain is announced, then done
        next(stream)
    stream.close()
    path = out / "chains.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert len(read_chain_records(out)) == 2
    with pytest.raises(UsageError, match="already holds"):
        next(evaluate_chains(maker(), chains, arms(), out=out))
    with pytest.raises(UsageError, match="other chains"):
        next(evaluate_chains(maker(), chains[:2], arms(), out=out, resume=True))
    events = list(evaluate_chains(maker(), chains, arms(), out=out, resume=True))
    assert [type(event) for event in events[:2]] == [ChainAsked, ChainDone]
    assert len(events) == 12
    assert len(read_chain_records(out)) == 8
    with pytest.raises(UsageError, match="other notes"):
        next(evaluate_chains(maker(), chains, arms(), out=out, resume=True, notes={"calibration": "another"}))
    with pytest.raises(UsageError, match="cannot be resumed"):
        next(evaluate_chains(maker(), chains, arms(), out=out, regime="set", resume=True))


def test_shards_fill_one_folder(items: list[Item], tmp_path: Path) -> None:
    chains, out = build(items, 6, seed=1), tmp_path / "out"
    for number in (1, 2):
        list(evaluate_chains(maker(), chains, arms(), out=out, shard=(number, 2)))
    assert sorted(path.name for path in out.glob("chains*.jsonl")) == ["chains-1.jsonl", "chains-2.jsonl"]
    assert {(record.arm, record.chain) for record in read_chain_records(out)} == {
        (arm.name, chain.id) for arm in arms() for chain in chains
    }
    with pytest.raises(UsageError, match="does not exist"):
        next(evaluate_chains(maker(), chains, arms(), out=out, shard=(3, 2)))


class Forgetful:
    """A keeper of the scripted memories. `honest`: forgetting removes the fact; otherwise it only says so."""

    def __init__(self, stores: dict[str, dict[str, tuple[str, Passage]]], honest: bool = True) -> None:
        self.stores, self.honest = stores, honest

    def forget(self, memory: str, facts: Sequence[str]) -> int:
        if self.honest:
            self.stores[memory].clear()
        return len(facts)

    def holds(self, memory: str, text: str) -> bool:
        return any(text in passage.text for _, passage in self.stores.get(memory, {}).values())


@pytest.mark.parametrize("honest", [True, False])
def test_a_forgotten_fact_that_comes_back_is_caught(items: list[Item], honest: bool, tmp_path: Path) -> None:
    chains = tuple(of_kind(build(items, 8, seed=1), "forgotten"))
    assert [turn.kind for turn in chains[0].turns] == ["hop", "hop", "forgotten", "full"]
    assert [len(shared_needs(chains[0], n)) for n in range(4)] == [
        0,
        0,
        0,
        1,
    ], "what was forgotten is no longer an opportunity"
    stores: dict[str, dict[str, tuple[str, Passage]]] = {}
    make = lambda config, corpus: Rememberer(config, corpus, stores, True)  # noqa: E731
    list(evaluate_chains(make, chains, arms(), out=tmp_path / "out", keeper=Forgetful(stores, honest)))
    found = chain_report.write(tmp_path / "out")
    assert found.tried["forgotten_facts"] == 1
    # the honest store has no tombstones: it learns the fact again in turn 3 and serves it in turn 4
    assert found.gates["forgotten_served"] == (1 if honest else 2)


def test_a_stored_secret_is_caught(items: list[Item], tmp_path: Path) -> None:
    chain = of_kind(build(items, 8, seed=1), "control")[0]
    (secret,) = chain.secrets
    (source,) = [source for source in chain.passages if secret in source.text]
    assert chain.turns[-1].kind == "secret"
    assert chain.turns[-1].answers[0] in source.text
    stores: dict[str, dict[str, tuple[str, Passage]]] = {}

    class Blabber(Rememberer):
        def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
            self.store["x"] = ("y", Passage(source.pid, source.pid, "", source.text, 0, len(source.text)))
            yield from super().ask("Film Nr1?")

    make = lambda config, corpus: Blabber(config, corpus, stores, True)  # noqa: E731
    list(evaluate_chains(make, [chain], arms()[:1], out=tmp_path / "out", keeper=Forgetful(stores)))
    assert chain_report.write(tmp_path / "out").gates["secrets_stored"] == len(chain.turns)


def test_planted_secrets_come_in_every_shape() -> None:
    made = [planted(str(n)) for n in range(64)]
    assert all(need.object in source.text and secret in source.text for source, need, secret in made)
    assert len({source.text.split(", ")[1].split(" ")[2] for source, _, _ in made}) == 4


def test_dates_agree_in_any_order() -> None:
    assert same_value("June 17, 1964", "17 June 1964")
    assert same_value("1964", "June 17, 1964")
    assert not same_value("June 17, 1964", "June 18, 1964")


def test_gold_stays_out_of_what_sessions_get(items: list[Item]) -> None:
    seen: list[str] = []

    def spy(config: Config, corpus: CorpusSpec) -> Rememberer:
        seen.append(repr(corpus))
        return Rememberer(config, corpus, {}, True)

    chain = build(items, 4, seed=1)[0]
    ask_chain(spy, arms()[0], chain, "chain")
    assert seen
    assert not any("supporting" in text or "evidences" in text or "Need(" in text for text in seen)


def test_a_namesake_s_fact_is_not_called_wrong(items: list[Item]) -> None:
    chain = of_kind(build(items, 8, seed=1), "shared")[0]
    film = chain.turns[0].needs[0].subject

    def judged(fact: Fact) -> str:
        return _judged(fact, chain, 0).judged

    assert judged(Fact("a", film, "director", chain.turns[0].answers[0], 0.9)) == "right"
    assert judged(Fact("a", film, "director", "Somebody Else", 0.9)) == "wrong"
    assert judged(Fact("a", f"{film} (1999 film)", "director", "Somebody Else", 0.9)) == "unknown"
    assert judged(Fact("a", "Another Film", "director", "Somebody Else", 0.9)) == "unknown"
