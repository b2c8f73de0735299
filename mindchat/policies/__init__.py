"""Policies: when to retrieve, what to ask, which passages to keep. One file a paper, all on the same loop.

Owns: the decisions. Does not own: generation, entities, search, prompts, counting.
"""

from __future__ import annotations

POLICIES: dict[str, str] = {
    "mind": "mindchat.policies.mind:Mind",
    "rind-fixed": "mindchat.policies.mind:RindFixed",
    "rind-entropy": "mindchat.policies.mind:RindEntropy",
    "sentences": "mindchat.policies.schedules:Sentences",
    "once": "mindchat.policies.schedules:Once",
    "none": "mindchat.policies.schedules:NoRetrieval",
}
"""engine.policy → "module:Class"."""
