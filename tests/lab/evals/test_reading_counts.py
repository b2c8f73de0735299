"""Counts of readings and plans over a small set in the data's own form."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mindchat.chain.measured import Count, confidence, measured, trust
from mindchat.lab.evals.reading_counts import CORPUS, SETS, agrees, count

TEXTS = {
    "Dawn": "Dawn is a 1931 German film directed by Ada Stone.",
    "Ada Stone": "Ada Stone (3 May 1890 – 1 June 1950) was a Polish director. She was born in Lund.",
}


def row(gold: str, director: str) -> bytes:
    return msgspec.json.encode(
        {
            "question": "Where was the director of film Dawn born?",
            "answers": [gold],
            "context": [{"title": title, "text": text} for title, text in TEXTS.items()],
            "meta": {"evidences": [["Dawn", "director", director], ["Ada Stone", "date of birth", "1890"]]},
        }
    )


def test_odd_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / f"{SETS[0]}.dev.jsonl").write_bytes(row("Rome", "Tom Reed") + b"\n" + row("Lund", "Ada Stone") + b"\n")
    (tmp_path / f"{SETS[1]}.dev.jsonl").write_bytes(row("Lund", "Ada Stone") + b"\n" + row("Rome", "Ada Stone") + b"\n")
    lines = [
        msgspec.json.encode({"id": str(n), "title": title, "text": text})
        for n, (title, text) in enumerate(TEXTS.items())
    ]
    (tmp_path / CORPUS).write_bytes(b"\n".join(lines) + b"\n")
    found = count(tmp_path, "2026-12-01")
    assert found.relations == {"date_of_birth": Count(1, 1), "director": Count(1, 1)}
    assert found.plans["chain"] == Count(1, 2)


def test_what_agrees() -> None:
    assert agrees("date_of_birth", "3 May 1890", "1890")
    assert not agrees("date_of_birth", "3 May 1890", "1891")
    assert agrees("country_of_citizenship", "French", "France")
    assert not agrees("father", "Karl Berg", "Ivo Berg of Holm")
    assert agrees("father", "Karl Berg", "Karl Berg of Holm")


def test_what_ships_was_counted() -> None:
    assert measured().relations["director"].read > 50
    assert 0.5 < confidence("spouse") < confidence("director") < 1
    assert confidence("director", by_model=True) == 0.5
    worst = min(count.share for count in measured().relations.values() if count.read >= 5)
    assert confidence("conflict") == confidence("sibling") == worst < confidence("director")
    known = trust("comparison")
    assert known is not None
    assert known.n > 20
    assert trust("no such way") is None
