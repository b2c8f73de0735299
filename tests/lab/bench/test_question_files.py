"""A file that is no file of questions is named, whatever is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindchat.errors import UsageError
from mindchat.lab.bench.retrieval_quality import load_questions

BAD = {
    "nested": b'{"question":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "binary": bytes(range(256)),
    "null": b"null\n",
    "a number": b'{"question": "x", "context": 5}',
    "numbers": b'{"question": "x", "context": [5]}',
    "nothing": b"",
    "no question": b'{"context": []}',
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_no_file_of_questions_is_named(tmp_path: Path, kind: str) -> None:
    (tmp_path / "q.jsonl").write_bytes(BAD[kind])
    with pytest.raises(UsageError):
        load_questions(tmp_path / "q.jsonl")
