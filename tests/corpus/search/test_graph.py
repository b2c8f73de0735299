from __future__ import annotations

import random

import pytest

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.graph import Graph, same
from mindchat.corpus.search.weave import MOST_BEARERS, TOO_COMMON, Weaver
from mindchat.values import Passage

PARTS = ["Fritz", "Lang", "Metropolis", "Thea", "Harbou", "Berlin", "Opera", "House", "Vienna", "Film", "River", "1927"]


def note(number: int, title: str, text: str, heading: str = "", start: int = 0) -> Passage:
    return Passage(f"p{number}-{start}", f"/notes/n{number}.md", title, text, start, start + len(text), heading=heading)


def woven(passages, base=None, order=None, text=lambda uri: None) -> Graph:
    weaver = Weaver(Analyzer("en"), text)
    for passage in passages:
        weaver.offer(passage)
    return weaver.graph(passages, base, order)


def mentions(graph: Graph, row: int) -> list[str]:
    return [graph.key(name) for name in graph.of(row)]


def bearers(graph: Graph, key: str) -> dict[str, float]:
    return {graph.ids[row].decode(): share for row, share in graph.about(graph.names.find(key.encode()))}


def test_who_bears_and_who_mentions():
    film = note(1, "Metropolis (film)", "Metropolis was directed by Fritz Lang. See [[Thea]] and [more](n3.md).")
    graph = woven([film, note(2, "Fritz Lang", "He was born in Vienna."), note(3, "Thea", "A writer.")])
    assert mentions(graph, 0) == ["metropolis", "fritz lang", "thea", "\0/notes/n3.md"]
    assert bearers(graph, "fritz lang") == {"p2-0": 1.0}
    assert bearers(graph, "\0/notes/n3.md") == {"p3-0": 1.0}


def test_a_documents_first_passage_bears_its_title_in_full_and_the_rest_share():
    passages = [note(1, "Fritz Lang", "Text.", start=at) for at in (0, 10, 20, 30)] + [note(2, "Fritz Lang", "Other.")]
    found = bearers(woven(passages), "fritz lang")
    assert found["p1-0"] == found["p2-0"] == pytest.approx(2**-0.5)
    assert found["p1-10"] == found["p1-30"] == pytest.approx(5**-0.5)


def test_a_name_leads_to_so_many_passages_at_most_and_nowhere_if_it_is_too_common():
    many = woven([note(1, "Fritz Lang", "Text.", start=at) for at in range(MOST_BEARERS + 10)])
    assert len(bearers(many, "fritz lang")) == MOST_BEARERS
    assert "p1-0" in bearers(many, "fritz lang")
    common = woven([note(number, f"Title {number}", "Text.", heading="Introduction") for number in range(TOO_COMMON)])
    assert bearers(common, "introduction") == {}


def test_a_name_that_many_mention_counts_little():
    texts = ["Fritz Lang. Vienna."] * 3 + ["Fritz Lang."] * 1500
    passages = [note(number, f"Title Number {number}", text) for number, text in enumerate(texts)]
    graph = woven([*passages, note(2000, "Fritz Lang", "x"), note(2001, "Vienna", "y"), note(2002, "Berlin", "z")])
    lang, vienna, berlin = (graph.rarity(graph.names.find(name)) for name in (b"fritz lang", b"vienna", b"berlin"))
    assert berlin == 1.0
    assert 0.0 <= lang < 0.01 < 0.8 < vienna < 1.0


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who directed Metropolis?", ["metropolis"]),
        ("Is the Metropolis Opera House in Vienna?", ["metropolis opera house", "vienna"]),
        ("who directed metropolis", ["metropolis"]),
        ("Who lives in a metropolis?", []),
        ("Metropolis Metropolis", ["metropolis"]),
        ("", []),
        ("\ud800 Metropolis", ["metropolis"]),
    ],
)
def test_names_of_a_question(question, names):
    titles = ["Metropolis", "Metropolis Opera House", "Metropolis Opera Houses", "Vienna", "Metropolisx"]
    graph = woven([note(number, title, "x") for number, title in enumerate(titles)])
    assert [graph.key(name) for name in graph.named(question)] == names


def test_aliases_stand_before_the_first_passage():
    front = "---\naliases: [The Master]\n---\n"
    passages = [note(1, "Fritz Lang", "Text.", start=len(front)), note(2, "x", "It was The Master.")]
    graph = woven(passages, text=lambda uri: front + "Text.")
    assert mentions(graph, 1) == ["the master"]
    assert bearers(graph, "the master") == {f"p1-{len(front)}": 1.0}


def test_rows_stand_in_the_order_that_the_engine_gives():
    passages = [note(number, f"Title {PARTS[number]}", f"Of Title {PARTS[number - 1]}.") for number in range(5)]
    order = ["p3-0", "gone", "p0-0", "p4-0", "p1-0", "p2-0"]
    graph = woven(passages, order=order)
    assert [id_.decode() for id_ in graph.ids] == [id_ for id_ in order if id_ != "gone"]
    assert mentions(graph, 0) == ["title metropolis"]
    assert bearers(graph, "title lang") == {"p1-0": 1.0}


def test_files_hold_the_same_graph(tmp_path):
    graph = woven([note(1, "Metropolis", "By Fritz Lang."), note(2, "Fritz Lang", "")])
    graph.save(tmp_path / "graph")
    assert same(Graph.load(tmp_path / "graph"), graph)
    woven([]).save(tmp_path / "empty")
    assert len(Graph.load(tmp_path / "empty").ids) == 0


def test_a_changed_library_gives_the_graph_that_reading_everything_gives():
    """Passages come, go, change titles and texts, in any order; names appear in old texts and vanish from them."""
    chance = random.Random(5)

    def some(words: int) -> str:
        return " ".join(chance.choices([*PARTS, "and", "the", "[[Thea Harbou]]", "(n3.md)", "]"], k=words))

    held: dict[int, Passage] = {}
    graph = None
    for _ in range(60):
        for number in chance.sample(range(12), k=chance.randint(0, 3)):
            if number in held and chance.random() < 0.4:
                del held[number]
            else:
                old = held.get(number)
                fresh = " ".join(chance.sample(PARTS, k=chance.randint(1, 3)))
                title = old.title if old and chance.random() < 0.5 else fresh
                held[number] = note(number, title, some(12))
        passages = chance.sample(list(held.values()), k=len(held))
        step = woven(passages, graph)
        assert same(step, woven(passages))
        graph = step


def test_texts_that_a_change_does_not_touch_are_not_read_again(monkeypatch):
    from mindchat.corpus.search import weave

    read: list[str] = []

    class Counting(weave.Finder):
        def find(self, text: str, uri: str = "") -> list[int]:
            read.append(text)
            return super().find(text, uri)

    passages = [note(number, f"Title {PARTS[number]}", f"The Title {PARTS[number - 1]}.") for number in range(6)]
    graph = woven(passages)
    monkeypatch.setattr(weave, "Finder", Counting)
    fresh = note(7, "Nosferatu", "By Title Lang.")
    woven([*passages, fresh], graph)
    assert read == [fresh.text]
