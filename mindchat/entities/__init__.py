"""Entities: what is at stake in a flagged sentence, and which of it is worth asking about.

Owns: extraction (MIND §3.1) and the four filters (§3.3) with `auto`. Does not own: triggers, sub-queries, what memory
keeps.
"""

from __future__ import annotations

from mindchat.plugins import Table

FILTERS = Table(
    "mindchat.filters",
    {
        "none": "mindchat.entities.filters:KeepAll",
        "cot": "mindchat.entities.filters:ChainOfThought",
        "conf": "mindchat.entities.filters:Confidence",
        "conf+cot": "mindchat.entities.filters:ConfidenceAndChainOfThought",
        "auto": "mindchat.entities.filters:Auto",
    },
)
"""engine.filter → "module:Class"."""
