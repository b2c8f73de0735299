"""Texts that crashed or hijacked other terminal programs, and a turn that carries one of them everywhere."""

from __future__ import annotations

from mindchat import events as ev
from mindchat.values import (
    Absent,
    Answer,
    Citation,
    Entity,
    Fact,
    Message,
    Passage,
    Prompt,
    Query,
    Relation,
    Sifted,
    Text,
    Token,
    Trigger,
    Verdict,
    WordScore,
)

MARKUP = [
    "see [/x] [1] [b +",
    "[bold",
    "[/path]",
    "[OOHCS-1234] [/etc/x]",
    "'[/foo]' as \"[/bar]\"",
    "[@click=app.quit]press[/]",
    "a[/b].md",
    "$primary [link=file:///etc/passwd]x[/link]",
    "\\[x] [[y]] []] [",
]
ESCAPES = [
    "a\x1b]52;c;ZXZpbA==\x07b",
    "a\x1b[2Jb",
    "a\x9b31mb",
    "visible\rhidden",
    "a\x1b]8;;http://evil\x1b\\b",
    "a\x00b\x07c\x08d",
    "a\u202eb\u2066c",
    "\x1b[?1049l\x1bcx",
]
WIDE = [
    "👨‍👩‍👧 ❤️ 日本語 שלום مرحبا e\u0301 n\u0303",
    "x" * 10_000,
    "\u200b\u200d",
    "| a | b |\n|---|\n",
    "```\nopen fence",
    "# \n\n* \n1. ",
    "<b>bold</b> <script>x</script>",
]
ALL = [*MARKUP, *ESCAPES, *WIDE]


def turn(text: str) -> list[ev.Event]:
    """A turn with the text as question, tokens, names, passages, facts, notices and answer."""
    passage = Passage(text, text, text, text, 0, len(text), 1.0, 1, heading=text)
    fact = Fact("abc1234", text, text, text, 0.5, text, text, text)
    word = WordScore(text, 0, len(text), 1.0, 0.5, 0.1, True, 2.0)
    verdict = Verdict((word,), 1.0, ((text, 1.0),), text, Trigger(text, 0, 2.0, 1.0, reason=text))
    prompt = Prompt(
        (Message("user", (Text(text, "passage", text, 0), Text(text, "passage", text, 1), Text(text, "question"))),)
    )
    return [
        ev.TurnStarted(text, text, text, "mind", "conf", 1, "user", "same"),
        ev.NamesAbsent((Absent(text, (text,)),)),
        ev.StepStarted(text),
        ev.PromptBuilt(prompt, f"<|{text}|>{text * 3}", ((text,), (text,)), 10, 100, "reasoning"),
        ev.DocumentsDropped((ev.DocumentDropped(text, text),)),
        *(
            ev.TokenDrafted(Token(i, i, piece, -1.0, 1.0), "reasoning")
            for i, piece in enumerate([text[:3], text[3:7], text[7:]])
        ),
        ev.SentenceJudged(text, verdict, "mind", 0),
        ev.TextRetracted(text, "", 3),
        ev.RetrievalTriggered(1, text, 2.0, 1.0, 1.0, 1.0, text),
        ev.EntitiesExtracted((text,), (Relation(text, text, text),), True),
        ev.EntitiesFiltered(
            "conf", (Sifted(Entity(text, text, None, 0.4), False, text), Sifted(Entity(text, text), True, text))
        ),
        ev.QueryFormed(Query(text, text), 1),
        ev.FactsRecalled((fact,), text),
        ev.PassagesFound(text, (passage,), 1),
        *(ev.TokenDrafted(Token(i, i, piece), "answer") for i, piece in enumerate([text[:3], text[3:7], text[7:]])),
        ev.FactsLearned((ev.FactLearned(fact, True),), ((text, 2),)),
        ev.FactsWithdrawn((fact,), text),
        ev.Notice(text, "warning"),
        ev.AnswerReady(
            Answer(
                text,
                text,
                True,
                "unresolved",
                (Citation(1, text, text, 0, min(len(text), 5), text[:5], "model"),),
                text,
            ),
            "answered",
            1.0,
        ),
    ]
