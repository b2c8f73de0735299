"""Who writes the sub-query: the model, the attention of the flagged words (DRAGIN's QFS), or the kept entities as they
are.

Owns: the writers and who speaks next when one only repeats a query of this turn; a query is never empty. Does not own:
the choice among them (query.form), what a repeated query leads to (engine).
Source: MIND §3.4 (a refined sub-query from entities and the missing relation); DRAGIN §3.2 (query formulation by
self-attention).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mindchat.config import Config
from mindchat.policies.qfs import qfs
from mindchat.ports import Ask
from mindchat.prompts.side import query_prompt
from mindchat.text.clean import clean_line
from mindchat.text.language import Language, language
from mindchat.values import Draft, Entity, Query, Relation, Signal, Trigger, TurnState

Writer = Callable[[Config, Trigger, Draft, Sequence[Entity], Sequence[Relation], TurnState, Ask], Query]


def by_model(
    config: Config,
    trigger: Trigger,
    draft: Draft,
    kept: Sequence[Entity],
    relations: Sequence[Relation],
    hop: TurnState,
    ask: Ask,
) -> Query:
    """A natural question; if the model writes none, the entities speak."""
    prompt = query_prompt(
        hop.question, " ".join(hop.accepted.split()), " ".join(draft.text.split()), [entity.text for entity in kept]
    )
    reply = ask.complete(prompt, max_tokens=config.query.max_tokens, kind="query", stop=("\n",))
    text = clean_line(reply.text).strip(" \"'")
    words = language(config.engine.language)
    written = (
        Query(text, "model")
        if any(words.content(word) for word in text.split())
        else by_entities(config, trigger, draft, kept, relations, hop, ask)
    )
    return written if is_new(written, hop, words) else missing(kept, relations, hop, words) or written


def by_relations(
    config: Config,
    trigger: Trigger,
    draft: Draft,
    kept: Sequence[Entity],
    relations: Sequence[Relation],
    hop: TurnState,
    ask: Ask,
) -> Query:
    """The missing relation as it was extracted, which costs no model call; without a new one, the model writes."""
    found = missing(kept, relations, hop, language(config.engine.language))
    return found or by_model(config, trigger, draft, kept, relations, hop, ask)


def is_new(query: Query, hop: TurnState, words: Language) -> bool:
    """Whether this turn has not searched for the same words; the question itself counts as searched for, since it says
    nothing of the hop.
    """
    return words.key(query.text) not in {words.key(earlier) for earlier in (*hop.queries, hop.question)}


def missing(kept: Sequence[Entity], relations: Sequence[Relation], hop: TurnState, words: Language) -> Query | None:
    """The first new query among what extraction found: what is sought of a name that reasoning brought up, such names
    alone, what is sought of the question's own names. The latter alone say nothing new: the question has been searched
    for.
    """
    asked = words.key(hop.question)
    sought = [
        (
            words.key(relation.subject) <= asked,
            Query(clean_line(f"{relation.subject} {relation.predicate}"), "relation"),
        )
        for relation in relations
    ]
    named = " ".join(entity.text for entity in kept if not words.key(entity.text) <= asked)
    ordered = (
        [query for given, query in sought if not given]
        + [Query(clean_line(named), "entities")]
        + [query for given, query in sought if given]
    )
    return next((query for query in ordered if query.text and is_new(query, hop, words)), None)


def by_entities(
    config: Config,
    trigger: Trigger,
    draft: Draft,
    kept: Sequence[Entity],
    relations: Sequence[Relation],
    hop: TurnState,
    ask: Ask,
) -> Query:
    """Kept entities, the relation asked for, and the clean beginning of the flagged sentence, as words for BM25."""
    del ask
    words = language(config.engine.language)
    parts = [entity.text for entity in kept] + [f"{relation.subject} {relation.predicate}" for relation in relations]
    parts.append(draft.text[: trigger.start])
    content = [word for part in parts for word in re.findall(r"[\w'’.-]+", part) if words.content(word)]
    unique = list(dict.fromkeys(word.casefold() for word in content))
    spelled = {word.casefold(): word for word in reversed(content)}
    return Query(" ".join(spelled[word] for word in unique) or hop.question, "entities")


def by_attention(
    config: Config,
    trigger: Trigger,
    draft: Draft,
    kept: Sequence[Entity],
    relations: Sequence[Relation],
    hop: TurnState,
    ask: Ask,
) -> Query:
    """The words that the flagged one looks at; without attention, the entities speak."""
    if Signal.ATTENTION not in ask.provides:
        return by_entities(config, trigger, draft, kept, relations, hop, ask)
    return qfs(draft, [trigger.start], hop, ask, language(config.engine.language), config.query.top_n)


WRITERS: dict[str, Writer] = {
    "model": by_model,
    "relations": by_relations,
    "attention": by_attention,
    "entities": by_entities,
}
"""query.form → writer."""


def sentence_query(sentence: str, question: str, openers: Sequence[str]) -> Query:
    """The last sentence as query (FS-RAG, IRCoT); a purely concluding one gives way to the question."""
    text = clean_line(sentence)
    first = text.split(" ", 1)[0].strip(",").casefold() if text else ""
    return Query(text, "sentence") if text and first not in openers else Query(question, "question")
