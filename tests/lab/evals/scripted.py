"""A scripted session: the events of a plausible turn around an answer that a function gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mindchat import events as ev
from mindchat.config import Config
from mindchat.lab.evals.examples import CorpusSpec, Source
from mindchat.ports import NEVER, Cancel
from mindchat.values import Answer, Citation, Passage, Query, Trust

Reply = Callable[[Config, str, CorpusSpec], "str | Exception | ev.TurnFailed"]


def passage(source: Source, rank: int) -> Passage:
    return Passage(source.pid, f"given/{source.pid}", source.title, source.text, 0, len(source.text), 1.0 / rank, rank)


class ScriptedSession:
    def __init__(self, config: Config, corpus: CorpusSpec, reply: Reply) -> None:
        self.config, self.corpus, self.reply = config, corpus, reply

    def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        config = self.config
        yield ev.TurnStarted(
            question,
            question,
            "scripted",
            config.engine.policy,
            config.engine.filter,
            1,
            "user",
            as_="same",
            seed=config.engine.seed,
        )
        found: tuple[Passage, ...] = ()
        if config.engine.policy != "none" and self.corpus.kind == "own":
            yield ev.RetrievalTriggered(1, "word", 2.0, 1.0, 2.0, 1.0, "score above threshold")
            yield ev.QueryFormed(Query(question), 1)
            words = set(question.lower().split())
            ranked = sorted(
                self.corpus.passages, key=lambda s: (-len(words & set(f"{s.title} {s.text}".lower().split())), s.pid)
            )
            found = tuple(passage(source, n) for n, source in enumerate(ranked[:3], 1))
            yield ev.PassagesFound(question, found, len(found))
            yield ev.ModelAsked("draft", 50, 10, 20, 0.01)
        if cancel.cancelled:
            yield ev.TurnCancelled("")
            return
        reply = self.reply(config, question, self.corpus)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ev.TurnFailed):
            yield reply
            return
        yield ev.ModelAsked("answer", 100, 20, 5, 0.02)
        yield ev.DraftAccepted(reply, "answer", 5)
        cited = [p for p in found if reply and reply in p.text][:1]
        citations = tuple(
            Citation(1, p.document, p.id, p.text.index(reply), p.text.index(reply) + len(reply), reply, "span")
            for p in cited
        )
        yield ev.AnswerReady(
            Answer(
                f"The answer is {reply}.",
                reply,
                not reply,
                "sourced",
                citations,
                trust=Trust(0.9 if reply else 0.1, 0.8, 100),
            ),
            "answered",
            0.03,
            0.01,
        )
