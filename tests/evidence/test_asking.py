"""The asked type and the asked relation, in every language that has a file for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.errors import ConfigError
from mindchat.evidence.asking import Asked, asking
from mindchat.text.folding import fold
from mindchat.text.language import language

LANGUAGES = ("en", "de", "fr", "es")

CASES = [
    ("en", "Who is the mother of Berengaria?", Asked.WHO),
    ("en", "By whom was the castle built?", Asked.WHO),
    ("en", "Which actor replaced him?", Asked.WHO),
    ("en", "Where was the director of Metropolis born?", Asked.WHERE),
    ("en", "In which city was the director of Metropolis born?", Asked.WHERE),
    ("en", "Hayden is a singer from Canada, but where does Buck-Tick hail from?", Asked.WHERE),
    ("en", "When did the mother of Joseph Ferdinand die?", Asked.WHEN),
    ("en", "The King who opened the Civic Center in 1968 was born in what year?", Asked.WHEN),
    ("en", "How many legs does the animal have?", Asked.HOW_MANY),
    ("en", "What was the population of the town where the tugboat lies?", Asked.HOW_MANY),
    ("en", "Which film has the director born first, Chad Hanna or The Avenging Shadow?", Asked.WHICH_OF_TWO),
    ("en", "Are Selo and Volovo located in the same country?", Asked.YES_NO),
    ("en", "What is the award that the performer received?", Asked.OTHER),
    # a question word that only joins clauses does not ask
    ("en", "What team did the person who found the comet play for?", Asked.OTHER),
    ("en", "Which opera company is based in the city where the emperor died?", Asked.OTHER),
    ("en", "What is the name of the castle in the birth city of the performer of When I Was a Boy?", Asked.OTHER),
    ("en", "", Asked.OTHER),
    ("de", "Wer ist die Mutter von Karl?", Asked.WHO),
    ("de", "Wo wurde der Regisseur geboren?", Asked.WHERE),
    ("de", "In welchem Jahr starb er?", Asked.WHEN),
    ("de", "Wie viele Einwohner hat Bonn?", Asked.HOW_MANY),
    ("de", "Welcher Fluss ist länger, Rhein oder Elbe?", Asked.WHICH_OF_TWO),
    ("de", "Ist Bonn größer als Köln?", Asked.YES_NO),
    ("fr", "Qui est la mère de Karl ?", Asked.WHO),
    ("fr", "Où est né le réalisateur ?", Asked.WHERE),
    ("fr", "En quelle année est-il mort ?", Asked.WHEN),
    ("fr", "Combien d'habitants a Lyon ?", Asked.HOW_MANY),
    ("fr", "Quel fleuve est le plus long, la Loire ou la Seine ?", Asked.WHICH_OF_TWO),
    ("fr", "Est-ce que Lyon a un port ?", Asked.YES_NO),
    ("es", "¿Quién es la madre de Karl?", Asked.WHO),
    ("es", "¿Dónde nació el director?", Asked.WHERE),
    ("es", "¿En qué año murió?", Asked.WHEN),
    ("es", "¿Cuántos habitantes tiene Lima?", Asked.HOW_MANY),
    ("es", "¿Qué río es más largo, el Ebro o el Tajo?", Asked.WHICH_OF_TWO),
    ("es", "¿Es Lima mayor que Quito?", Asked.YES_NO),
]


@pytest.mark.parametrize(("code", "question", "expected"), CASES)
def test_the_asked_type(code: str, question: str, expected: Asked) -> None:
    assert asking(code).asked(question) is expected


@pytest.mark.parametrize(
    ("code", "question", "told"),
    [
        ("en", "Who is Berengaria's mother?", "her daughters"),
        ("en", "Where did he die?", "was killed"),
        ("en", "Which university did she attend? Where did she study?", "graduated"),
        ("de", "Wo starb der Komponist?", "wurde ermordet"),
        ("fr", "Où mourut le compositeur ?", "fut assassiné"),
        ("es", "¿Dónde murió el compositor?", "fue asesinado"),
    ],
)
def test_the_words_that_state_the_asked_relation(code: str, question: str, told: str) -> None:
    ask = asking(code)
    assert ask.relation(question) & {ask.stem(word) for word in fold(told).split()}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_all_types_marks_and_relations(code: str) -> None:
    ask = asking(code)
    assert ask.words is language(code)
    assert len(ask.relations) >= 20
    assert all(ask.marks.values())
    assert set(ask.seeks_by_cue) == set(ask.spans)


@pytest.mark.parametrize(
    ("code", "forms"),
    [
        ("en", ("directed", "director", "directors", "directing")),
        ("en", ("countries", "country")),
        ("en", ("die", "dies")),
        ("en", ("lead", "leads")),
        ("en", ("bread", "breads")),
        ("en", ("lease", "leases")),
        ("de", ("gründung", "gründungen")),
        ("fr", ("fondateur", "fondateurs")),
        ("es", ("fundador", "fundadores")),
    ],
)
def test_forms_of_one_word_have_one_stem(code: str, forms: tuple[str, ...]) -> None:
    assert len({asking(code).stem(fold(form)) for form in forms}) == 1


@given(st.text(max_size=80))
def test_any_question_has_a_type_and_stems_without_endings_of_nothing(question: str) -> None:
    ask = asking("en")
    assert ask.asked(question) in Asked
    assert all(ask.stems(question))


def test_an_unknown_language_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="tlh"):
        asking("tlh")
