"""The shape of what a model server answers: which fields are read, and of which type each must be.

Owns: the types, the check. Does not own: reading the values (replies, elect, connect). Source: the reference of
OpenAI's chat completions, with what vLLM and llama.cpp add. Only fields that are read are named; a server may send any
others.
"""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0, le=1 << 40)]
Number = float | int
LARGEST = 1e300
"""Numbers beyond it are no log-probabilities, and no float either."""


class _Likely(TypedDict, total=False):
    token: str | None
    logprob: Number | None
    bytes: list[Annotated[int, Meta(ge=0, le=255)]] | None


class _Measured(_Likely, total=False):
    top_logprobs: list[_Likely] | None


class _Figures(TypedDict, total=False):
    content: list[_Measured] | None
    tokens: list[str] | None
    token_logprobs: list[Number | None] | None
    top_logprobs: list[dict[str, Number | None] | None] | None


class _Said(TypedDict, total=False):
    content: str | None
    reasoning_content: str | None
    reasoning: str | None


class _Choice(TypedDict, total=False):
    index: int | None
    delta: _Said | None
    message: _Said | None
    logprobs: _Figures | None
    finish_reason: str | None


class _Cached(TypedDict, total=False):
    cached_tokens: Count | None


class _Usage(TypedDict, total=False):
    prompt_tokens: Count | None
    completion_tokens: Count | None
    prompt_tokens_details: _Cached | None


class _PromptToken(TypedDict, total=False):
    logprob: Number | None
    decoded_token: str | None


class Reply(TypedDict, total=False):
    """A body, or one event of a stream."""

    choices: list[_Choice] | None
    usage: _Usage | None
    prompt_logprobs: list[dict[str, _PromptToken] | None] | None
    data: list[dict[str, Any]] | None


def parse(text: str) -> Any:
    """The JSON value. Raises ValueError, also where it is nested too deeply or holds a number that no computer does."""
    import json

    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(digits: str) -> int:
    number = int(digits[:400])
    if abs(number) > LARGEST:
        raise ValueError("a number is too large")
    return number


def flaw(reply: Any) -> str:
    """What is wrong with the shape of an object, in words; "" if nothing is."""
    try:
        msgspec.convert(reply, Reply)
    except (msgspec.ValidationError, RecursionError) as error:
        return str(error)
    return ""
