"""Who writes the sub-query, and who speaks next when the model only repeats what was searched for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mindchat import events as ev
from mindchat.config import Config, change
from mindchat.policies.queries import WRITERS, is_new, missing
from mindchat.text.language import language
from mindchat.values import Entity, Query, Relation, Span, TurnState

from ..fakes import CURIE, LANG, METROPOLIS, ListRetriever, of, run

WORDS = language("en")
QUESTION = "Where was the director of the film Metropolis born?"
ANCHOR = Entity("Metropolis", "other", None, None)
REASONED = Entity("Fritz Lang", "other", Span(36, 46), 0.9)
SEEN = TurnState(1, QUESTION, queries=(QUESTION,))
BORN = Relation("Fritz Lang", "birthplace", "")
DIRECTED = Relation("Metropolis", "studio", "")


@pytest.mark.parametrize(
    ("kept", "relations", "hop", "text", "by"),
    [
        ([ANCHOR, REASONED], [DIRECTED, BORN], SEEN, "Fritz Lang birthplace", "relation"),
        ([ANCHOR, REASONED], [], SEEN, "Fritz Lang", "entities"),
        (
            [ANCHOR, REASONED],
            [BORN],
            TurnState(2, QUESTION, queries=(QUESTION, "birthplace of Fritz Lang")),
            "Fritz Lang",
            "entities",
        ),
        ([ANCHOR], [DIRECTED], SEEN, "Metropolis studio", "relation"),
    ],
    ids=[
        "of a reasoned name first",
        "a reasoned name alone",
        "not the same words again",
        "of a name of the question last",
    ],
)
def test_the_missing_relation_speaks_when_a_query_repeats(
    kept: Sequence[Entity], relations: Sequence[Relation], hop: TurnState, text: str, by: str
) -> None:
    assert missing(kept, relations, hop, WORDS) == Query(text, by)


@pytest.mark.parametrize("kept", [[], [ANCHOR]])
def test_names_of_the_question_alone_are_no_new_query(kept: Sequence[Entity]) -> None:
    assert missing(kept, [], SEEN, WORDS) is None


def test_the_question_counts_as_searched_for_whether_it_was_or_not() -> None:
    assert not is_new(
        Query("the director of Metropolis, where born"),
        TurnState(1, "Where was the director of Metropolis born?"),
        WORDS,
    )
    assert is_new(Query("Where was Fritz Lang born?"), SEEN, WORDS)


TAPE = ["The director of Metropolis is Ann{9,0.9} Droid.", " Metropolis; Ann Droid | Ann Droid - birthplace"]
REST = [" Fritz Lang. So the answer is Vienna.", "Vienna"]


def test_a_query_that_repeats_the_question_gives_way_to_the_relation_and_is_searched() -> None:
    retriever = ListRetriever([METROPOLIS], [LANG], [CURIE])
    events = run(QUESTION, [*TAPE, f" {QUESTION}", *REST], "engine.filter=none", "rind.first=true", retriever=retriever)
    assert [(query.text, query.by) for query in retriever.queries] == [
        (QUESTION, "question"),
        ("Ann Droid birthplace", "relation"),
    ]
    assert [e.repeated for e in of(events, ev.QueryFormed)] == [False, False]


def test_relations_need_no_model_call() -> None:
    retriever = ListRetriever([METROPOLIS], [LANG], [CURIE])
    events = run(
        QUESTION, [*TAPE, *REST], "engine.filter=none", "rind.first=true", "query.form=relations", retriever=retriever
    )
    assert [query.by for query in retriever.queries] == ["question", "relation"]
    assert "query" not in {e.kind for e in of(events, ev.ModelAsked)}


def test_every_form_of_the_setting_has_a_writer() -> None:
    for form in WRITERS:
        assert change(Config(), "query.form", form).query.form == form
