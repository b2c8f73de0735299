"""Policies: when to retrieve, what to ask, which passages to keep. One file a paper, all on the same loop.

Owns: the decisions. Does not own: generation, entities, search, prompts, counting.
"""

from __future__ import annotations

from mindchat.plugins import Table

POLICIES = Table(
    "mindchat.policies",
    {
        "auto": "mindchat.policies.auto:Auto",
        "mind": "mindchat.policies.mind:Mind",
        "rind-fixed": "mindchat.policies.mind:RindFixed",
        "rind-entropy": "mindchat.policies.mind:RindEntropy",
        "dragin": "mindchat.policies.dragin:Dragin",
        "flare": "mindchat.policies.flare:Flare",
        "seakr": "mindchat.policies.seakr:Seakr",
        "ircot": "mindchat.policies.ircot:Ircot",
        "selfask": "mindchat.policies.asking:SelfAsk",
        "decompose": "mindchat.policies.asking:Decompose",
        "sentences": "mindchat.policies.schedules:Sentences",
        "tokens": "mindchat.policies.schedules:Tokens",
        "gate": "mindchat.policies.gate:Gate",
        "once": "mindchat.policies.schedules:Once",
        "none": "mindchat.policies.schedules:NoRetrieval",
    },
)
"""engine.policy → "module:Class"."""
