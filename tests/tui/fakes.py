"""A scripted session for the screens: real values and events, no model, no store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat import config as settings
from mindchat import events as ev
from mindchat.config import Config
from mindchat.errors import MindChatError
from mindchat.pace import Extra, Forecast
from mindchat.paths import Paths
from mindchat.ports import NEVER, Cancel
from mindchat.trace import Trace, cut_of, fold
from mindchat.values import (
    Answer,
    Citation,
    Entity,
    Fact,
    Kept,
    Message,
    Passage,
    Prompt,
    Query,
    Relation,
    Sifted,
    Span,
    Text,
    Token,
    Trigger,
    Verdict,
    WordScore,
)

QUESTION = "Who is the paternal grandfather of Charles Bretagne Marie de La Trémoille?"
SON = (
    "Charles Bretagne Marie de La Trémoille (1764–1839) was a French soldier. He was the son of Jean Bretagne Charles"
    " de La Trémoille."
)
FATHER = (
    "Jean Bretagne Charles de La Trémoille (1737–1792) was the son of Charles Armand René de La Trémoille and lived in"
    " Nice."
)
OTHER = "The House of La Trémoille is a French noble family from Poitou."
PASSAGES = (
    Passage("p1", "/docs/charles.md", "Charles Bretagne Marie de La Trémoille", SON, 0, len(SON), 18.42, 1),
    Passage("p2", "/docs/jean.md", "Jean Bretagne Charles de La Trémoille", FATHER, 0, len(FATHER), 12.1, 2),
    Passage("p3", "/docs/house.md", "House of La Trémoille", OTHER, 0, len(OTHER), 4.75, 3),
)
FACT = Fact(
    "k3f9a2c", "Charles Bretagne Marie", "father", "Jean Bretagne Charles", 0.93, "/docs/charles.md", "p1", SON[60:100]
)
LEARNT = Fact(
    "m7d1e4b", "Jean Bretagne Charles", "father", "Charles Armand René", 0.88, "/docs/jean.md", "p2", FATHER[50:90]
)
FIRST = " His father was Jean Bretagne Charles."
FLAGGED = " Jean's father was Louis of Thouars."
REWRITTEN = " Jean was the son of Charles Armand René."
ANSWER = (
    "His paternal grandfather was **Charles Armand René de La Trémoille** [2], through his father Jean [1]. See also"
    " [9]."
)


def tokens(text: str, start: int = 0, entropy: float = 0.4) -> tuple[Token, ...]:
    words = [piece for piece in text.replace(" ", "\x00 ").split("\x00") if piece]
    return tuple(Token(start + i, 100 + i, word, -0.3, entropy + 0.25 * (i % 4)) for i, word in enumerate(words))


def verdict(text: str, trigger: str = "") -> Verdict:
    words, at = [], 0
    for index, word in enumerate(text.split()):
        start = text.index(word, at)
        at = start + len(word)
        content = word[0].isupper()
        score = 0.0 if not content else (1.62 if word == trigger else 0.2 + 0.28 * (index % 4))
        words.append(
            WordScore(
                word.strip("."), start, start + len(word.strip(".")), 0.6 + 0.2 * (index % 3), 0.4, 0.12, content, score
            )
        )
    theta = 1.31
    terms = (("alpha", 1.0), ("mean_entropy", 0.72), ("beta", 1.0), ("mean_attention", 0.59))
    hit = Trigger(trigger, text.index(trigger), 1.62, theta, 1.4, 0.9, "score over the threshold") if trigger else None
    return Verdict(tuple(words), theta, terms, "alpha * mean_entropy + beta * mean_attention", hit)


def prompt(copies: int, purpose: str) -> ev.PromptBuilt:
    segments: list[Text] = []
    for copy in range(copies):
        for passage in PASSAGES:
            segments.append(Text(f"[{passage.rank}] {passage.title}\n{passage.text}\n\n", "passage", passage.id, copy))
    messages = (
        Message("system", (Text("Answer from the documents.", "instruction"),)),
        Message("user", (*segments, Text(f"Question: {QUESTION}", "question"))),
        Message("assistant", (Kept((1, 2, 3), FIRST),)),
    )
    sent = "".join(f"<|im_start|>{m.role}\n{m.text}<|im_end|>\n" for m in messages)
    return ev.PromptBuilt(
        Prompt(messages), sent, tuple(("p1", "p2", "p3") for _ in range(copies)), 412 * max(1, copies), 32768, purpose
    )


def drafted(text: str, channel: str = "reasoning") -> list[ev.Event]:
    return [ev.TokenDrafted(token, channel) for token in tokens(text)]  # type: ignore[arg-type]


def turn(question: str = QUESTION) -> list[ev.Event]:
    """A whole multi-hop turn: two hops, one retraction, two copies, citations, facts."""
    kept = " Jean's"
    return [
        ev.TurnStarted(question, question, "smollm2-135m", "mind", "conf", 1, "user", "same"),
        ev.StepStarted("rewrite"),
        prompt(0, "reasoning"),
        ev.PromptPrefilled(64, 128, 0, 0.4),
        ev.PromptPrefilled(128, 128, 0, 0.8),
        *drafted(FIRST),
        ev.AttentionSettled(tuple(0.1 for _ in tokens(FIRST))),
        ev.SentenceJudged(FIRST, verdict(FIRST), "mind", 0),
        ev.DraftAccepted(FIRST, "reasoning", 7),
        *drafted(FLAGGED),
        ev.AttentionSettled(tuple(0.2 for _ in tokens(FLAGGED))),
        ev.SentenceJudged(FLAGGED, verdict(FLAGGED, "Louis"), "mind", 0),
        ev.TextRetracted(FLAGGED[FLAGGED.index("Louis") :], FLAGGED[: FLAGGED.index("Louis")], 4),
        ev.RetrievalTriggered(1, "Louis", 1.62, 1.31, 1.4, 0.9, "score over the threshold"),
        ev.StepStarted("extract", 1),
        ev.ModelAsked("extract", 200, 100, 30, 0.5),
        ev.EntitiesExtracted(
            ("Jean Bretagne Charles", "Louis", "Thouars"), (Relation("Jean Bretagne Charles", "father"),), False
        ),
        ev.EntitiesFiltered(
            "conf",
            (
                Sifted(Entity("Jean Bretagne Charles", "person", Span(0, 3), 0.86), True, "confidence 0.86 ≥ 0.50"),
                Sifted(Entity("Louis", "person", Span(4, 5), 0.31), False, "confidence 0.31 < 0.50"),
                Sifted(Entity("Charles Bretagne Marie", "person"), True, "anchor from the question"),
            ),
        ),
        ev.QueryFormed(Query("father of Jean Bretagne Charles de La Trémoille"), 1),
        ev.FactsRecalled((FACT,), "one fact fits, but does not answer"),
        ev.PassagesFound("father of Jean Bretagne Charles de La Trémoille", PASSAGES, 3, 0.01),
        prompt(2, "reasoning"),
        ev.DocumentsDropped((ev.DocumentDropped("p7", "no room in the window"),)),
        ev.PromptPrefilled(824, 824, 412, 1.4),
        *drafted(REWRITTEN[len(kept) :]),
        ev.SentenceJudged(REWRITTEN, verdict(REWRITTEN), "mind", 1),
        ev.DraftAccepted(REWRITTEN, "reasoning", 8),
        ev.QueryFormed(Query("Charles Armand René de La Trémoille", "sentence"), 2),
        ev.SearchSkipped((PASSAGES[1],), "memory holds the source of k3f9a2c"),
        prompt(2, "answer"),
        ev.PromptPrefilled(850, 850, 824, 0.2),
        *drafted(ANSWER, "answer"),
        ev.DraftAccepted(ANSWER, "answer", 20),
        ev.ModelAsked("answer", 26, 824, 20, 1.0),
        ev.FactsLearned((ev.FactLearned(LEARNT, True), ev.FactLearned(FACT, False)), (("imperative", 1),)),
        ev.FactsWithdrawn(
            (Fact("w1x2y3z", "Jean", "lived in", "Paris", 0.4, "/docs/jean.md", status="withdrawn"),),
            "the document changed",
        ),
        ev.Notice("Prompt shortened by one passage.", "info"),
        ev.AnswerReady(
            Answer(
                ANSWER,
                "Charles Armand René de La Trémoille",
                False,
                "sourced",
                (
                    Citation(
                        1,
                        "/docs/charles.md",
                        "p1",
                        SON.index("son of"),
                        SON.index("son of") + 24,
                        SON[SON.index("son of") :][:24],
                        "model",
                    ),
                    Citation(
                        2,
                        "/docs/jean.md",
                        "p2",
                        FATHER.index("Charles Armand"),
                        FATHER.index("Charles Armand") + 35,
                        FATHER[FATHER.index("Charles Armand") :][:35],
                        "span",
                    ),
                ),
                "[1] is from “Charles Bretagne Marie de La Trémoille”, a passage about what was asked",
            ),
            "answered",
            6.4,
            0.9,
        ),
    ]


class FakeLibrary:
    def __init__(self) -> None:
        self.documents = 84

    def search(self, query: Query, k: int) -> tuple[Passage, ...]:
        return PASSAGES[:k]

    def status(self) -> dict[str, Any]:
        return {"collection": "demo", "documents": self.documents, "passages": 97, "generation": 1, "roots": []}


class FakeRegistry:
    def __init__(self) -> None:
        self.texts = {"/docs/charles.md": SON, "/docs/jean.md": FATHER, "/docs/house.md": OTHER}

    def text(self, uri: str) -> str | None:
        return self.texts.get(uri)

    def passage(self, id: str) -> Passage | None:
        return next((passage for passage in PASSAGES if passage.id == id), None)

    def places(self, id: str) -> tuple[str, ...]:
        return tuple(passage.document for passage in PASSAGES if passage.id == id)

    def documents(self, collection: str | None = None) -> Iterator[Any]:
        return iter(())

    def count(self, collection: str | None = None) -> tuple[int, int]:
        return 84, 97


class FakeChat(Struct, frozen=True):
    id: str
    title: str
    project: str = "demo"
    updated_at: str = "2026-01-02T03:04:05"
    turns: int = 2


class FakeHit(Struct, frozen=True):
    chat: str
    title: str
    turn: int
    question: str
    answer: str


class FakeChats:
    """Sessions in a dictionary: id → (title, turns)."""

    def __init__(self) -> None:
        self.sessions: dict[str, tuple[str, list[tuple[str, str]]]] = {
            "s1aaaaa": ("Grandfathers", [("Who was he?", "Charles Armand [1].")]),
            "s2bbbbb": (
                "Rivers [/x]",
                [("Which river is longest?", "The **Loire**."), ("And in Europe?", "The Volga.")],
            ),
        }

    def list(self, n: int = 50, project: str | None = None) -> list[FakeChat]:
        return [FakeChat(id, title, turns=len(turns)) for id, (title, turns) in self.sessions.items()][:n]

    def search(self, words: str, n: int = 20) -> list[FakeHit]:
        found = [
            (id, title, q, a)
            for id, (title, turns) in self.sessions.items()
            for q, a in turns
            if words.lower() in (q + a).lower()
        ]
        return [FakeHit(id, title, 1, q, a) for id, title, q, a in found][:n]

    def rename(self, session: str, title: str) -> str:
        self.sessions[session] = (title, self.sessions[session][1])
        return title

    def fork(self, session: str, upto: int | None = None) -> str:
        self.sessions["s3copy"] = self.sessions[session]
        return "s3copy"

    def delete(self, session: str) -> None:
        del self.sessions[session]

    def export(self, session: str, form: str = "md") -> str:
        return f"# {self.sessions[session][0]}"

    def history(self, session: str) -> list[tuple[str, str]]:
        return self.sessions[session][1] if session in self.sessions else []

    def past(self, session: str) -> list[tuple[str, str, str]]:
        return [(question, answer, "done") for question, answer in self.history(session)]


class FakeModel:
    id, window = "smollm2-135m", 32768


class FakeRooms(Struct):
    paths: Paths
    library: FakeLibrary
    registry: FakeRegistry
    memory: Any
    chats: Any
    project: str = "demo"


def rooms(home: Path) -> FakeRooms:
    return FakeRooms(
        Paths(home, home, home, home / "cache", home / "models"), FakeLibrary(), FakeRegistry(), object(), FakeChats()
    )


class FakeSession:
    """Looks like mindchat.session.Session; plays a list of events with a pause after each."""

    def __init__(
        self, home: Path, *, script: Callable[[str], list[ev.Event]] = turn, pause: float = 0.0, slow_load: bool = False
    ) -> None:
        self.config = settings.change(Config(), "model.name", "smollm2-135m")
        self.rooms = rooms(home)
        self.incognito = False
        self.id: str | None = None
        self.turns: list[Trace] = []
        self.events: list[ev.Event] = []
        self.history: list[tuple[str, str]] = []
        self.past: tuple[tuple[str, str, str], ...] = ()
        self.script, self.pause = script, pause
        self.typed: list[bool] = []
        self.anyway: list[bool] = []
        """Of each retry, whether it was to keep its words."""
        self.rest: list[ev.Event] = []
        """What going on with a cut answer brings."""
        self.may_load = threading.Event()
        if not slow_load:
            self.may_load.set()
        self.model: Any = None
        self.threads: set[str] = set()
        self.load_error: MindChatError | None = None
        self.read_for: list[Config] = []
        self.expected: Forecast | None = None
        self.notices: list[str] = []
        """Repairs that somebody is to be told."""
        self.closed = False
        self.reading = False
        """Whether reading ahead goes on until it is stopped."""

    def load(self) -> Iterator[ev.ModelLoading]:
        self.threads.add(threading.current_thread().name)
        steps = 20
        for step in range(steps + 1):
            if self.model is not None:
                return
            if step == steps:
                self.may_load.wait(60.0)
            yield ev.ModelLoading("load", step, steps, 0.1 * step)
        if self.load_error is not None:
            raise self.load_error
        self.model = FakeModel()

    def read_ahead(self, *, cancel: Cancel = NEVER) -> int:
        self.threads.add(threading.current_thread().name)
        self.read_for.append(self.config)
        while self.reading and not cancel.cancelled:
            time.sleep(0.005)
        cancel.check()
        return 12

    def forecast(self) -> tuple[Forecast | None, Extra | None]:
        return self.expected, None

    def ask(self, text: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        self.threads.add(threading.current_thread().name)
        yield from self.load()
        self.id = self.id or "s1"
        trace, self.events = Trace(), []
        for event in self.script(text):
            if self.pause:
                time.sleep(self.pause)
            if cancel.cancelled:
                event = ev.TurnCancelled(trace.reasoning, trace.phase)
            trace = fold(trace, event)
            self.events.append(event)
            if isinstance(event, ev.LAST):
                self.turns.append(trace)
                if trace.answer is not None:
                    self.history.append((text, trace.answer.text))
            yield event
            if isinstance(event, ev.LAST):
                return

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def close(self) -> None:
        self.closed = True

    def newest_cut(self) -> Any:
        return cut_of(self.turns[-1]) if self.turns else None

    def more(self, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        trace = self.turns[-1]
        for event in self.rest:
            trace = fold(trace, event)
            yield event
        self.turns[-1] = trace

    def retry(self, *, cancel: Cancel = NEVER, as_typed: bool = False, anyway: bool = False) -> Iterator[ev.Event]:
        self.anyway.append(anyway)
        self.typed.append(as_typed)
        return self.ask(self.newest_question or "", cancel=cancel)

    @property
    def newest_question(self) -> str | None:
        return self.turns[-1].question if self.turns else self.past[-1][0] if self.past else None

    def change(self, key: str, value: str) -> Config:
        self.config = settings.change(self.config, key, value)
        return self.config

    def go_incognito(self, on: bool) -> None:
        self.incognito, self.id = on, None

    def new(self) -> None:
        self.resume(None)

    def resume(self, id: str | None) -> None:
        self.id, self.turns, self.events = id, [], []
        self.history = list(self.rooms.chats.history(id)) if id else []
        self.past = tuple(self.rooms.chats.past(id)) if id else ()
