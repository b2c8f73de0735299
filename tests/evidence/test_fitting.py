"""An answer of another type does not fit; where nothing is known, it does."""

from __future__ import annotations

import pytest

from mindchat.evidence.asking import asking
from mindchat.evidence.fitting import fits, is_sentence, kind_of, misfit

from ..fakes import passage

ASK = asking("en")
READ = (
    passage("m", "Track & Field News is a magazine that was founded by Bert Nelson.", "Track & Field News"),
    passage("n", "Bert Nelson (1921 – 1994) was an editor. He was born in San Diego.", "Bert Nelson"),
    passage("v", "Vienna is the capital of Austria. Fritz Lang lived in Vienna.", "Vienna"),
)


@pytest.mark.parametrize(
    ("question", "answer", "why"),
    [
        ("Where was the founder of Track & Field News born?", "Bert Nelson", "bridge"),
        ("Where was the founder of Track & Field News born?", "San Diego", ""),
        ("Where was the founder of Track & Field News born?", "Nowhere Town", ""),  # nothing is known about it
        ("Who founded Track & Field News?", "Bert Nelson", ""),
        ("Who founded Track & Field News?", "Vienna", "bridge"),
        ("Who founded Track & Field News?", "Track & Field News", "echo"),
        ("Who founded Track & Field News?", "Yes", "yes_no"),
        ("Who founded Track & Field News?", "Bert Nelson founded the magazine in San Diego", "sentence"),
        ("Who founded Track & Field News?", "1948", "kind"),
        ("When was Track & Field News founded?", "1948", ""),
        ("When was Track & Field News founded?", "in May of that year", ""),
        ("When was Track & Field News founded?", "the 19th century", ""),
        ("When was Track & Field News founded?", "San Diego", "kind"),
        ("How many issues has it?", "twelve issues", ""),
        ("How many issues has it?", "none", ""),
        ("How many issues has it?", "a magazine", "kind"),
        ("Are Vienna and Linz in the same country?", "Yes.", ""),
        ("Are Vienna and Linz in the same country?", "Yes, both are in Austria", ""),
        ("Are Vienna and Linz in the same country?", "Austria", "kind"),
        ("Which city is larger, Vienna or Linz?", "Vienna", ""),
        ("Which city is larger, Vienna or Linz?", "Graz", "kind"),
        ("Which city is larger, Vienna or Linz?", "No", "yes_no"),
        ("What is Opry Mills in Nashville?", "Opry Mills", "echo"),
        ("What is Opry Mills in Nashville?", "a shopping mall that was opened in 2000", ""),
        ("Who sang No?", "No Doubt", ""),
        ("Who sang it?", "", ""),
    ],
)
def test_why_an_answer_does_not_fit(question: str, answer: str, why: str) -> None:
    assert misfit(answer, question, ASK, READ) == why
    assert fits(answer, question, ASK, READ) is not bool(why)


@pytest.mark.parametrize(
    ("code", "question", "answer", "why"),
    [
        ("de", "Wer gründete Bonn?", "Ja", "yes_no"),
        ("de", "Wann starb Karl?", "am 3. Mai", ""),
        ("fr", "Qui fonda Lyon ?", "Oui", "yes_no"),
        ("fr", "Quand mourut Karl ?", "Lyon", "kind"),
        ("es", "¿Quién fundó Lima?", "Sí", "yes_no"),
        ("es", "¿Cuántos hijos tuvo?", "tres", ""),
    ],
)
def test_other_languages(code: str, question: str, answer: str, why: str) -> None:
    assert misfit(answer, question, asking(code)) == why


@pytest.mark.parametrize(
    ("name", "kind"), [("Bert Nelson", "person"), ("Vienna", "place"), ("Fritz Lang", ""), ("", ""), ("?", "")]
)
def test_the_passages_tell_a_person_from_a_place(name: str, kind: str) -> None:
    assert kind_of(name, READ, ASK) == kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Lord of the Rings", False),
        ("University of California, Los Angeles", False),
        ("He was born in Vienna", True),
        ("Was", False),
        ("What We Did on Our Holiday", False),
        (
            (
                "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
                " seventeen"
            ),
            True,
        ),
    ],
)
def test_a_sentence_is_no_name(text: str, expected: bool) -> None:
    assert is_sentence(text, ASK) is expected
