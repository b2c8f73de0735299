"""Scores of given continuations on a server, by the best means that it has.

Owns: Model.choose over HTTP. Does not own: requests (server). Three means, the first that works:
* the prompt's own log-probabilities with the option in the open assistant turn (vLLM): the exact sum over the option's tokens;
* a walk along the option, one token at a time, reading it off the k likeliest tokens (servers that continue an open turn): exact as long as
  each token is among them; one that is not gets the k-th's log-probability, an upper bound, and ends the walk;
* the first token alone, if the options begin differently (servers that cannot continue): how likely the reply is to begin that way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mindchat.errors import CapabilityError, ServerError
from mindchat.models.remote.capabilities import Abilities
from mindchat.models.remote.replies import FLOOR, scored_of, value_of
from mindchat.ports import Cancel
from mindchat.values import Choice, Message, Prompt, Text

Top = Sequence[tuple[str, float]]


class Askable(Protocol):
    """What is needed of the model."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    abilities: Abilities

    def one(self, prompt: Prompt, more: Mapping[str, Any], cancel: Cancel) -> Mapping[str, Any]:
        """One answer of one token."""
        ...


def elect(model: Askable, prompt: Prompt, options: Sequence[str], cancel: Cancel) -> list[Choice]:
    """The options with their log-probabilities, in the order given. Raises CapabilityError."""
    able = model.abilities
    if able.scores_prompts:
        return [_exact(model, prompt, option, cancel) for option in options]
    if not able.entropy:  # without the likeliest tokens there is nothing to read an option off
        raise CapabilityError(
            f"{model.id} cannot score given answers: its server gives no log-probabilities of the likeliest tokens.",
            "vLLM and llama.cpp servers do; or choose a model on this machine.",
        )
    seen: dict[str, Top] = {}
    if able.mode != "instruct":
        return [_walk(model, prompt, option, seen, cancel) for option in options]
    return _firsts(model, prompt, options, seen, cancel)


def extended(prompt: Prompt, words: str) -> Prompt:
    """The prompt with words behind its open assistant turn."""
    if not words:
        return prompt
    *before, last = prompt.messages
    segments = last.segments if last.role == "assistant" else ()
    kept = before if last.role == "assistant" else [*before, last]
    return Prompt((*kept, Message("assistant", (*segments, Text(words, "reasoning")))))


def _exact(model: Askable, prompt: Prompt, option: str, cancel: Cancel) -> Choice:
    """From the end of the prompt backwards until the option is covered; a token across its border counts as the option's."""
    if not option:
        return Choice(option, 0.0, 0)
    answer = model.one(extended(prompt, option), {"prompt_logprobs": 0}, cancel)
    total, count, left = 0.0, 0, len(option)
    for entry in reversed(answer.get("prompt_logprobs") or []):
        if left <= 0:
            break
        if not isinstance(entry, dict) or not entry:
            continue
        scored = next(iter(entry.values()))
        total += value_of(scored.get("logprob") or 0.0)
        count += 1
        left -= len(str(scored.get("decoded_token") or ""))
    if left > 0:
        raise ServerError(
            "The server's log-probabilities of the prompt do not cover the option.", "Its log may say why."
        )
    return Choice(option, total, count)


def _alternatives(model: Askable, prompt: Prompt, words: str, seen: dict[str, Top], cancel: Cancel) -> Top:
    """The likeliest tokens behind the prompt and these words."""
    if words not in seen:
        more = {"logprobs": True, "top_logprobs": model.abilities.top}
        scored = scored_of(model.one(extended(prompt, words), more, cancel)["choices"][0])
        seen[words] = scored[0].top if scored else ()
    return seen[words]


def _fitting(top: Top, words: str, option: str) -> tuple[str, float] | None:
    """The longest of the tokens that goes on with the option; white space in front of its first word may be the template's."""
    rest = option[len(words) :]
    fits = [(text, value) for text, value in top if text and rest.startswith(text)]
    if not words and not fits:
        lead = len(rest) - len(rest.lstrip())
        fits = [
            (rest[:lead] + text.lstrip(), value)
            for text, value in top
            if text.strip() and rest.lstrip().startswith(text.lstrip())
        ]
    return max(fits, key=lambda pair: len(pair[0]), default=None)


def _walk(model: Askable, prompt: Prompt, option: str, seen: dict[str, Top], cancel: Cancel) -> Choice:
    words, total, count = "", 0.0, 0
    while words != option:
        top = _alternatives(model, prompt, words, seen, cancel)
        found = _fitting(top, words, option)
        count += 1
        if found is None:
            total += min((value for _, value in top), default=FLOOR)
            break
        words, total = words + found[0], total + found[1]
    return Choice(option, total, count)


def _firsts(
    model: Askable, prompt: Prompt, options: Sequence[str], seen: dict[str, Top], cancel: Cancel
) -> list[Choice]:
    top = _alternatives(model, prompt, "", seen, cancel) if options else ()
    found = [_fitting(top, "", option) for option in options]
    begun = {option: fit[0] for option, fit in zip(options, found, strict=True) if fit is not None}
    if len(set(begun.values())) < len(begun):
        raise CapabilityError(
            f"{model.id} cannot tell these answers apart: they begin alike, and its server cannot continue a reply that"
            " has begun.",
            "vLLM and llama.cpp servers can; or choose a model on this machine.",
        )
    least = min((value for _, value in top), default=FLOOR)
    return [Choice(option, fit[1] if fit else least, 1) for option, fit in zip(options, found, strict=True)]
