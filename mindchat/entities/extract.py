"""Extraction of entities and relations from question, reasoning and the flagged sentence.

Owns: the call, the tolerant parse, the fallback to spans, the placing of each name in the draft. Does not own:
filtering.
Source: MIND §3.1 (what is asked); the one-line form and the fallback are ours (the paper prints no format, and small
models break JSON).
"""

from __future__ import annotations

import re

from msgspec import Struct

from mindchat.config import Config
from mindchat.entities.confidence import entity_confidence, token_span
from mindchat.ports import Ask
from mindchat.prompts.side import extract_prompt
from mindchat.text.language import language
from mindchat.text.names import find_names
from mindchat.values import Draft, Entity, Relation, TurnState

MAX_TOKENS = 64
MAX_ENTITIES = 8


class Extracted(Struct, frozen=True):
    """What was found."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
    fallback: bool
    """True if nothing of the model's output could be used."""
    raw: str


def parse(raw: str) -> tuple[list[str], list[Relation]]:
    """Names and relations of one line "a; b | a - relation; …". Tolerant: anything that does not fit is left out."""
    line = next((line for line in raw.splitlines() if line.strip()), "")
    line = re.sub(r"^\s*(?:Names?|Entities)\s*:\s*", "", line, flags=re.IGNORECASE)
    named, _, related = line.partition("|")
    names = [name.strip(" .\"'“”[]{}()") for name in re.split(r"[;,](?!\s*(?:Jr|Sr)\b)|\s\|\s", named)]
    relations = []
    for item in related.split(";"):
        parts = [part.strip(" .\"'") for part in re.split(r"\s+[-–—]\s+", item)]
        if len(parts) >= 2 and parts[0] and parts[1]:
            relations.append(Relation(parts[0], parts[1], parts[2] if len(parts) > 2 else ""))
    return [name for name in names if name], relations


class ModelExtractor:
    """One greedy call of at most 64 tokens; names that stand in neither question, reasoning nor sentence are not taken."""

    def __init__(self, config: Config) -> None:
        self._filter = config.filter
        self._words = language(config.engine.language)

    def extract(self, draft: Draft, hop: TurnState, ask: Ask) -> Extracted:
        """Entities in order of appearance; one without a span is an anchor of the question. Never raises for broken
        output.
        """
        reasoning = " ".join(f"{hop.accepted} {draft.text}".split())
        reply = ask.complete(
            extract_prompt(hop.question, reasoning), max_tokens=MAX_TOKENS, kind="extract", stop=("\n",)
        )
        names, relations = parse(reply.text)
        known = f"{hop.question}\n{hop.accepted}\n{draft.text}".casefold()
        usable = [
            name for name in names if 1 < len(name) <= 80 and name.casefold() in known and self._words.content(name)
        ]
        fallback = not usable
        if fallback:
            usable = [name for name, _, _, _ in find_names(draft.text, self._words)]
        # the question's own names are always at stake, whatever the model listed
        usable += [name for name, _, _, kind in find_names(hop.question, self._words) if kind == "name"]
        return Extracted(self._placed(usable, draft, hop), tuple(relations), fallback, reply.text)

    def _placed(self, names: list[str], draft: Draft, hop: TurnState) -> tuple[Entity, ...]:
        entities: dict[str, Entity] = {}
        folded_draft, folded_question = draft.text.casefold(), hop.question.casefold()
        for name in names:
            key = name.casefold()
            if key in entities or any(key in other for other in entities):
                continue
            # a name of the question is an anchor: the user's word, not the model's guess
            at = -1 if key in folded_question else folded_draft.rfind(key)
            span = token_span(draft, at, at + len(name)) if at >= 0 else None
            scores = entity_confidence(draft, span, self._filter.gamma, self._filter.delta) if span else {}
            entities[key] = Entity(
                name, span=span, confidence=scores.get(self._filter.aggregate), aggregates=tuple(scores.items())
            )
        return tuple(list(entities.values())[:MAX_ENTITIES])
