"""Measurements are tried with the tiny models and the small library of the rooms that they measure."""

from __future__ import annotations

from ...corpus.conftest import library, make_library
from ...models.conftest import family, one_thread, smollm, tiny, tokenizer

__all__ = ["family", "library", "make_library", "one_thread", "smollm", "tiny", "tokenizer"]
