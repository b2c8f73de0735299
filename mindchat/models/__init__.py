"""Language models: from a name to text with signals.

Owns: the catalogue of models, fetching and converting them, loading, and the decode loop that measures while it
generates.
Does not own: prompts and when to ask (prompts, policies), how many calls are made (engine).
This module imports nothing heavy: the table below names classes as strings, and torch is imported when one is loaded.
"""

from __future__ import annotations

from mindchat.plugins import Table

MODELS = Table(
    "mindchat.models",
    {
        "hf": "mindchat.models.local:LocalModel",
        "scripted": "mindchat.models.scripted:ScriptedModel",
        "server": "mindchat.models.remote.server:ServerModel",
    },
)
"""Back end -> "module:Class"."""
