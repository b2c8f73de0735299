"""JSON that somebody else may have written: a file, a line, an answer.

Owns: decode(), which fails in one way only. Does not own: what the value should be (the callers' types).
"""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")


@overload
def decode_json(data: bytes | str) -> Any: ...
@overload
def decode_json(data: bytes | str, type: type[T]) -> T: ...
def decode_json(data: bytes | str, type: Any = Any) -> Any:
    """The value of `data`. Raises msgspec.DecodeError (a ValueError), also for what is nested deeper than Python's calls."""
    try:
        return msgspec.json.decode(data, type=type)
    except RecursionError:
        raise msgspec.DecodeError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"it is not UTF-8 (byte {error.start})") from None
