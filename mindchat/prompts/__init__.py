"""The prompts: what the model is told, and how the context is laid out (CoRe).

Owns: every word that MindChat itself says to a model. Does not own: when a prompt is sent, tokenisation, chat
templates.
"""

from __future__ import annotations

from mindchat.plugins import Table

COMPOSERS = Table(
    "mindchat.copies",
    {
        "user": "mindchat.prompts.core:UserRole",
        "assistant": "mindchat.prompts.core:AssistantRole",
    },
)
"""layout.role → "module:Class"."""
