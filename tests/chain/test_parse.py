"""Questions and their plans, by table; what has no fitting shape has none."""

from __future__ import annotations

import pytest

from mindchat.chain.parse import parse, shapes
from mindchat.chain.plan import Comparison, Name, Plan, Sameness, Step, Term, start, steps
from mindchat.memory.learning.slots import predicates


def said(term: Term) -> str:
    """ "mother < director < Metropolis"."""
    if isinstance(term, Name):
        return f"{term.text}{f' ({term.hint})' if term.hint else ''}"
    return f"{term.relation}{f':{term.gender}' if term.gender else ''} < {said(term.of)}"


def told(plan: Plan) -> str:
    if isinstance(plan, Comparison):
        return f"{plan.want} {plan.relation}: {said(plan.terms[0])} | {said(plan.terms[1])}"
    if isinstance(plan, Sameness):
        return f"same {plan.relation}: {said(plan.terms[0])} | {said(plan.terms[1])}"
    return said(plan)


CHAINS = {
    "Who directed Metropolis?": "director < Metropolis",
    "Where was the director of film Metropolis born?": "place_of_birth < director < Metropolis (film)",
    "What is the place of birth of the director of film Nosferatu (1922 film)?": (
        "place_of_birth < director < Nosferatu (1922 film film)"
    ),
    "Which country is the composer of the song Abide with Me from?": (
        "country_of_citizenship < composer < Abide with Me (the song)"
    ),
    "When did Anna Sorel's father die?": "date_of_death < father:male < Anna Sorel",
    "Who is the paternal grandfather of Otto of Limburg?": "father < father < Otto of Limburg",
    "Who is Anna Sorel's mother-in-law?": "mother < spouse < Anna Sorel",
    "Where did the director of film The Quiet Hour graduate from?": "educated_at < director < The Quiet Hour (film)",
    "When was the person who founded Acme Works born?": "date_of_birth < founder < Acme Works",
    "When was the father of the composer of film Dawn born?": "date_of_birth < father:male < composer < Dawn (film)",
}


@pytest.mark.parametrize("question", CHAINS)
def test_a_chain_is_read_from_the_inside(question: str) -> None:
    assert CHAINS[question] in [told(plan) for plan in parse(question)]


def test_a_word_for_two_ways_gives_both() -> None:
    assert [told(plan) for plan in parse("Who is Eustace's uncle?")] == [
        "sibling:male < father < Eustace",
        "sibling:male < mother < Eustace",
    ]


DIRECTED = "director < Dawn | director < Dusk"
COMPARISONS = {
    "Who is older, Annie Morton or Terry Richardson?": "least date_of_birth: Annie Morton | Terry Richardson",
    "who is younger Keith Bostic or Jerry Glanville ?": "most date_of_birth: Keith Bostic | Jerry Glanville",
    "Was Ausaf Ali or Steven Perry born first?": "least date_of_birth: Ausaf Ali | Steven Perry",
    "Who died later, Ada Stone or Ben Frost?": "most date_of_death: Ada Stone | Ben Frost",
    "Who lived longer, Ada Stone or Ben Frost?": "most lifespan: Ada Stone | Ben Frost",
    "Which film came out earlier, Soul Boy or Peut-être?": "least publication_date: Soul Boy | Peut-être",
    "Which band was formed first, Blue Sky or The Red Door?": "least inception: Blue Sky | The Red Door",
    "Which film has the director who was born later, Dawn or Dusk?": f"most date_of_birth: {DIRECTED}",
    "Which film whose director is younger, Dawn or Dusk?": f"most date_of_birth: {DIRECTED}",
    "Which film has the older director, Dawn or Dusk?": f"least date_of_birth: {DIRECTED}",
    "Which film has the director died first, No, No, Ann or Dusk?": (
        "least date_of_death: director < No, No, Ann | director < Dusk"
    ),
}


@pytest.mark.parametrize("question", COMPARISONS)
def test_a_comparison_has_two_terms_and_an_end(question: str) -> None:
    plans = parse(question)
    assert told(plans[0]) == COMPARISONS[question]
    assert all(name.written in question for plan in plans if isinstance(plan, Comparison) for name in plan.names)


NATION = "same country_of_citizenship: "
SAME = {
    "Are Ada Stone and Ben Frost both from the same country?": f"{NATION}Ada Stone | Ben Frost",
    "Did Ada Stone and Ben Frost share the same nationality?": f"{NATION}Ada Stone | Ben Frost",
    "Are both movies, Dawn and Dusk, from the same country?": "same country_of_origin: Dawn | Dusk",
    "Do both films Dawn and Dusk have the directors from the same country?": NATION + DIRECTED,
    "Do both directors of films Dawn and Dusk share the same nationality?": NATION + DIRECTED,
    "Are director of film Dawn and director of film Dusk both from the same country?": NATION + DIRECTED,
    "Are Boise Airport and Grant Airport both located in the same country?": (
        "same country: Boise Airport | Grant Airport"
    ),
}


@pytest.mark.parametrize("question", SAME)
def test_sameness_tries_each_relation_that_can_be_meant(question: str) -> None:
    assert SAME[question] in [told(plan) for plan in parse(question)]


def test_a_name_with_the_joining_word_is_cut_at_each_place() -> None:
    plans = [plan for plan in parse("Who is older, Tom or Ann or Bob?") if isinstance(plan, Comparison)]
    assert {tuple(name.text for name in plan.names) for plan in plans} == {("Tom", "Ann or Bob"), ("Tom or Ann", "Bob")}


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Hello!",
        "How do I prune roses?",
        "In what year was the university where Sergei Tokarev was a professor founded?",
        "Which river system was the starting place for most hunters?",
        "Where is the magazine headquartered that Robert McElroy writes for?",
        "Eric Ambler and Carol Shields are both best known for what profession?",
        "Who wrote it?",
        "When was he born?",
        "x" * 5000,
        "Who is older, " + "A or " * 500 + "B?",
    ],
)
def test_what_has_no_shape_has_no_plan(question: str) -> None:
    assert parse(question) == ()


def test_a_language_without_shapes_has_no_plans() -> None:
    assert parse("Who directed Metropolis?", "de") == ()
    assert parse("Who directed Metropolis?", "../../etc") == ()


def test_every_relation_of_the_shapes_is_one_of_memory() -> None:
    known = shapes("en")
    assert known is not None
    used = {part.partition(":")[0] for ways in known.kinship.values() for way in ways for part in way}
    used |= {relation for relations in known.shared.values() for relation in relations}
    used |= {known.dated[kind] for kind in ("person", "work", "other")}
    assert used <= set(predicates())


def test_the_parts_of_a_chain() -> None:
    (plan, *_) = parse("Where was the director of film Metropolis born?")
    assert isinstance(plan, Step)
    assert start(plan).text == "Metropolis"
    assert [step.relation for step in steps(plan)] == ["director", "place_of_birth"]
