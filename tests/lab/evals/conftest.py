from __future__ import annotations

import json
from pathlib import Path

import pytest

ROWS = [
    {
        "id": f"q{n}",
        "question": f"Who built the tower of town number {n}?",
        "answers": [f"Builder {chr(65 + n % 26)}{n}"],
        "type": "bridge" if n % 2 else "comparison",
        "context": [
            {
                "title": f"Tower {n}",
                "text": f"The tower of town number {n} was built by Builder {chr(65 + n % 26)}{n}.",
                "is_supporting": True,
                "pid": f"s{n}",
            },
            {"title": f"River {n}", "text": f"A river runs by hill {n}.", "is_supporting": False, "pid": f"d{n}"},
            {"title": f"Mayor {n}", "text": f"Mayor {n} likes soup.", "is_supporting": False, "pid": f"e{n}"},
            {"title": f"Bread {n}", "text": f"Bread {n} is baked.", "is_supporting": False, "pid": f"f{n}"},
        ],
        "dataset": "hotpotqa",
        "meta": {"evidences": [[f"Tower {n}", "built by", f"Builder {chr(65 + n % 26)}{n}"]]},
    }
    for n in range(12)
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "hotpotqa.dev.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return path
