"""JSON of other people fails in one way only, and there is one place that reads it."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

import mindchat
from mindchat.text.foreign_json import decode_json

PACKAGE = Path(mindchat.__file__).parent
OWN_WAY = {
    "text/foreign_json.py": "the one way",
    "corpus/reading/readers/jsonl.py": "catches RecursionError, in the reader's words",
    "corpus/reading/readers/tables.py": "catches RecursionError, in the reader's words",
    "models/install/memory_estimate.py": "catches RecursionError; configurations may hold Infinity",
    "models/remote/shapes.py": "catches RecursionError; a server's whole numbers are bounded",
    "engine/trust.py": "a file of this package",
    "evidence/answerable.py": "a file of this package",
    "chain/measured.py": "a file of this package",
    "cli/output.py": "what this program has encoded itself",
    "lab/bench/llama.py": "a reference's own output",
}
BAD = {
    "deep list": b"[" * 200_000,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "cut": b'{"a"',
    "nothing": b"",
    "no UTF-8": b'{"a": "\xff"}',
    "words": b"hello",
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("type", [dict[str, object], list[int], object])
def test_whatever_is_wrong_is_one_error(kind: str, type: object) -> None:
    with pytest.raises(msgspec.DecodeError) as caught:
        decode_json(BAD[kind], type)  # type: ignore[call-overload]
    assert isinstance(caught.value, ValueError)


def test_nobody_else_reads_json() -> None:
    found = set()
    for source in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "json.loads", "json.load", "msgspec.json.decode", "msgspec.json.Decoder",
            ):  # fmt: skip
                found.add(source.relative_to(PACKAGE).as_posix())
    assert found - {"events.py"} == set(OWN_WAY)
