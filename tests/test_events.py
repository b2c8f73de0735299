"""The codec of events: every kind survives a round trip, one line each, and what is no event is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat import events
from mindchat.events import LAST, Event, from_json, to_json

KINDS = get_args(Event)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
st.register_type_strategy(str, TEXT)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(int, st.integers(-(2**53), 2**53))
ANY_EVENT = st.one_of([st.deferred(lambda kind=kind: _build(kind)) for kind in KINDS])


def _build(kind: type[msgspec.Struct]) -> st.SearchStrategy[msgspec.Struct]:
    """Instances of a Struct with arbitrary field values of the declared types."""
    fields = {field.name: _value(field.type) for field in msgspec.structs.fields(kind)}
    return st.builds(kind, **fields)


def _value(kind: object) -> st.SearchStrategy[object]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _build(kind)
    arguments = get_args(kind)
    if getattr(kind, "__origin__", None) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(_value(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*(_value(part) for part in arguments))
    if arguments and getattr(kind, "__origin__", None) is None:  # a union
        return st.one_of([_value(part) for part in arguments])
    return st.from_type(kind)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(ANY_EVENT)
def test_round_trip(event: Event) -> None:
    line = to_json(event)
    assert "\n" not in line
    assert line.startswith(f'{{"type":"{type(event).__name__}"')
    assert from_json(line) == event
    assert from_json(line.encode()) == event


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_is_tagged_by_its_name_frozen_and_documented(kind: type[msgspec.Struct]) -> None:
    config = kind.__struct_config__
    assert (config.tag, config.tag_field, config.frozen) == (kind.__name__, "type", True)
    assert kind.__doc__
    assert kind.__doc__.strip().endswith(".")


def test_no_event_is_left_out_of_the_union() -> None:
    source = Path(events.__file__).read_text(encoding="utf-8")
    assert set(re.findall(r'tag_field="type", tag="(\w+)"', source)) == {kind.__name__ for kind in KINDS}
    assert set(LAST) <= set(KINDS)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        '{"type":"Nothing"}',
        '{"question":"no type"}',
        '{"type":"Notice"}',
        '{"type":"Notice","text":1}',
        "{",
    ],
)
def test_what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(msgspec.DecodeError):  # ValidationError is one of its kinds
        from_json(line)
