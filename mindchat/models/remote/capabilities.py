"""What a model server can do, found out by asking it once.

Owns: Abilities, the probe at connect: models, window, open assistant turn, log-probabilities, characters a token.
Does not own: the requests afterwards (server), the connection (wire). One short generation tells most: its assistant
turn stands open in the middle of a word, so a server that continues it must say "is".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from mindchat.config import ModelSection, ServerSection
from mindchat.errors import ConfigError, ModelMissingError, ServerError
from mindchat.models.remote.http_client import Wire
from mindchat.models.remote.replies import scored_of
from mindchat.ports import NEVER, Cancel
from mindchat.text.clean import clean_line

Mode = Literal["continue", "prefill", "instruct"]
TOPS = (20, 5, 0)
"""How many of the likeliest tokens are asked for: what most servers allow at most, what some do, none."""
LIMITS = ("max_tokens", "max_completion_tokens")
REFUSED = frozenset({400, 422, 501})
"""Statuses that mean: not in this form."""
WINDOW = 4096
"""Tokens that are assumed where the server does not say."""
LETTERS = (0.5, 50.0)
"""Characters a token that a measurement may give."""
LONGEST_WINDOW = 1 << 30
"""Tokens; a server that says more is not believed."""
_SAMPLE = (
    "Paris is the capital and the largest city of France. It stands on the Seine, which rises in Burgundy, flows"
    " through the city from east to west and reaches the sea at Le Havre. In 1889 a tower of iron was built beside the"
    " river for the world's fair; it is still there. What is the capital of France? Answer in one sentence."
)
_OPEN = "The capital of France is Par"
_MIDDLE = "is"


class Abilities(Struct, frozen=True):
    """What was found out."""

    model: str
    """The server's id of the model."""
    window: int
    """Tokens."""
    mode: Mode
    """How an open assistant turn is continued: vLLM's continue_final_message, by itself, or only as an instruction."""
    top: int
    """How many of the likeliest tokens may be asked for."""
    logprob: bool
    entropy: bool
    scores_prompts: bool
    """Whether it gives log-probabilities of the prompt (vLLM)."""
    counts: bool
    """Whether its events may carry token counts."""
    limit: str
    """The name of the field that limits the tokens."""
    letters: float
    """Characters a token, measured."""
    notes: tuple[str, ...]


def settings_of(mode: Mode, top: int, counts: bool) -> dict[str, Any]:
    """The fields of a request that depend on the server."""
    fields: dict[str, Any] = {"stream_options": {"include_usage": True}} if counts else {}
    if mode == "continue":
        fields |= {"continue_final_message": True, "add_generation_prompt": False}
    if top:
        fields |= {"logprobs": True, "top_logprobs": top}
    return fields


def find_out(wire: Wire, section: ModelSection, cancel: Cancel = NEVER) -> Abilities:
    """Ask for the models, then for one word. Raises ServerError, ModelMissingError (naming the server's models)."""
    model, told = choose_model(wire, section, cancel)
    window = section.window or _window(wire, told, cancel)
    mode, top, counts, limit, events = _first_answer(wire, model, cancel)
    choices = [choice for event in events for choice in event.get("choices") or ()]
    text = "".join(str((choice.get("delta") or {}).get("content") or "") for choice in choices)
    scored = [each for choice in choices for each in scored_of(choice)]
    if mode != "instruct" and not text.startswith(_MIDDLE):
        mode = "instruct"
    widest = max((len(each.top) for each in scored), default=0)
    usage: Mapping[str, Any] = next((event["usage"] for event in reversed(events) if event.get("usage")), {})
    tokens = int(usage.get("prompt_tokens") or 0) or _counted(wire, model, mode, limit, cancel)
    found = Abilities(
        model,
        window or WINDOW,
        mode,
        top,
        bool(scored),
        widest > 1,
        mode == "continue" and _scores_prompts(wire, model, cancel),
        counts,
        limit,
        _letters(tokens),
        (),
    )
    return _noted(found, wire, bool(window), widest)


def _letters(tokens: int) -> float:
    """Characters a token, from the tokens of the sample as the server counts them; the usual ones if it counts none, or
    what cannot be.
    """
    letters = len(_SAMPLE + _OPEN) / tokens if tokens else 0.0
    return letters if LETTERS[0] <= letters <= LETTERS[1] else 3.0


def choose_model(wire: Wire, section: ModelSection, cancel: Cancel) -> tuple[str, Mapping[str, Any]]:
    """The server's id of the wanted model and what the server says about it; a server of one model need not be told its
    name.
    """
    try:
        listed = wire.get("models", cancel).get("data")
    except ServerError as error:
        if error.status not in (404, 405, 501):
            raise
        listed = None
    entries = {str(item["id"]): item for item in listed or () if isinstance(item, dict) and item.get("id")}
    if not entries or section.name in entries:
        return section.name, entries.get(section.name, {})
    if len(entries) == 1 and section.name == ModelSection().name:
        return next(iter(entries.items()))
    shown = ", ".join(clean_line(id, 80) for id in list(entries)[:12])
    raise ModelMissingError(
        f"The server {wire.shown} has no model {clean_line(section.name, 80)}.",
        f"Set model.name to one of its own: {shown}.",
    )


def _window(wire: Wire, told: Mapping[str, Any], cancel: Cancel) -> int:
    """Tokens of the window as vLLM, hosted servers or llama.cpp say it; 0 if nobody does."""
    for source in (told, told.get("meta")):
        for key in ("max_model_len", "context_length", "context_window", "n_ctx"):
            if found := _tokens(source, key):
                return found
    try:
        return _tokens(wire.get("/props", cancel).get("default_generation_settings"), "n_ctx")
    except ServerError:
        return 0  # only llama.cpp has this address


def _tokens(source: Any, key: str) -> int:
    """A window as a server states it; 0 if it states none, or none that can be."""
    value = source.get(key) if isinstance(source, dict) else None
    return value if isinstance(value, int) and 0 < value <= LONGEST_WINDOW else 0


def _attempts() -> Iterator[tuple[Mode, int, bool]]:
    """From the most that a server may allow to the least."""
    modes: tuple[Mode, ...] = ("continue", "prefill", "instruct")
    yield from ((mode, top, counts) for counts in (True, False) for mode in modes for top in TOPS)


def _first_answer(wire: Wire, model: str, cancel: Cancel) -> tuple[Mode, int, bool, str, list[dict[str, Any]]]:
    """The first form of the question that the server accepts, and its answer."""
    refused: set[str] = set()
    limit = LIMITS[0]
    last: ServerError | None = None
    for mode, top, counts in _attempts():
        if (mode == "continue" and "continue_final_message" in refused) or (counts and "stream_options" in refused):
            continue
        messages = [{"role": "user", "content": _SAMPLE}]
        if mode != "instruct":
            messages.append({"role": "assistant", "content": _OPEN})
        body = {
            "model": model,
            "messages": messages,
            "temperature": 0,
            "stream": True,
            **settings_of(mode, top, counts),
        }
        for name in dict.fromkeys((limit, *LIMITS)):
            try:
                return mode, top, counts, name, list(wire.stream("chat/completions", {**body, name: 3}, 3, cancel))
            except ServerError as error:
                if error.status not in REFUSED:
                    raise
                last = error
                refused |= {name for name in ("continue_final_message", "stream_options") if name in error.message}
                if LIMITS[1] not in error.message:
                    break
                limit = LIMITS[1]
    assert last is not None
    raise last


def _counted(wire: Wire, model: str, mode: Mode, limit: str, cancel: Cancel) -> int:
    """Tokens of the sample as the server counts them outside a stream (llama-cpp-python sends none within one); 0 if it
    never does.
    """
    messages = [{"role": "user", "content": _SAMPLE}, {"role": "assistant", "content": _OPEN}]
    body = {"model": model, "messages": messages, "temperature": 0, limit: 1, **settings_of(mode, 0, False)}
    try:
        usage = wire.post("chat/completions", body, cancel).get("usage")
    except ServerError as error:
        if error.status in REFUSED:
            return 0
        raise
    return int(usage.get("prompt_tokens") or 0) if isinstance(usage, dict) else 0


def _scores_prompts(wire: Wire, model: str, cancel: Cancel) -> bool:
    """Whether prompt_logprobs is understood and answered."""
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good"}]
    body = {
        "model": model,
        "messages": messages,
        "max_tokens": 1,
        "temperature": 0,
        "prompt_logprobs": 0,
        **settings_of("continue", 0, False),
    }
    try:
        return isinstance(wire.post("chat/completions", body, cancel).get("prompt_logprobs"), list)
    except ServerError as error:
        if error.status in REFUSED:
            return False
        raise


def _noted(found: Abilities, wire: Wire, told: bool, widest: int) -> Abilities:
    """The same with what the user should know."""
    from msgspec.structs import replace

    notes = []
    if found.mode == "instruct":
        notes.append(
            'This server cannot continue a reply that has begun; words to begin with, such as "Answer:", are put as an'
            " instruction."
        )
    if not found.logprob:
        notes.append(
            "This server gives no log-probabilities; methods that watch the model's uncertainty cannot be used with it."
        )
    elif not found.entropy:
        notes.append("This server gives the chosen token's log-probability only, so there is no entropy.")
    else:
        notes.append(f"Entropies are lower bounds, from the {widest} likeliest tokens that this server reports.")
    if not told:
        notes.append(
            f"This server does not say how long its window is; {found.window:,} tokens are assumed (model.window)."
        )
    address = urlsplit(wire.url)
    if wire.keyed and address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
        notes.append("The key travels unencrypted: the address begins with http, not https.")
    return replace(found, notes=tuple(notes))


def address_of(url: str) -> str:
    """The address with /v1 if it names no path."""
    plain = url.strip().rstrip("/")
    return plain if plain.count("/") > 2 else f"{plain}/v1"


def key_of(server: ServerSection, environ: Mapping[str, str]) -> str:
    """The key from the environment, without white space around it; "" if none is set up.

    Raises ConfigError, without a character of the key, if the variable is empty or holds what no header can carry.
    """
    if not server.key_env:
        return ""
    key, name = environ.get(server.key_env, "").strip(), clean_line(server.key_env, 80)
    if not key:
        raise ConfigError(
            f"The environment variable {name} is empty.", "Put the server's key into it, or clear server.key_env."
        )
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        said = (
            f"The environment variable {name} holds no key: a key has no blanks, line ends or characters outside ASCII."
        )
        raise ConfigError(said, "Copy the server's key into it anew.")
    return key
