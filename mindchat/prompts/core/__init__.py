"""CoRe: the context, laid out once and then repeated.

Owns: every layout that repeats the context, and what is known about how many copies help. Reading order: wording,
blocks, layouts, synthetic, orders.
Does not own: which passages are shown and how many fit (engine), paraphrases and summaries themselves
(prompts.rewriting asks, engine keeps).
Source: CoRe §3 and Tables 4, 5, 7 and 11. f_rep^(k) is k copies in total; `copies` here counts the repetitions, k - 1.
Every copy has the same wording, so that the prompt with n + 1 copies extends the one with n.
"""

from mindchat.prompts.core.blocks import copies_of, documents, escaped, memory_block, ordered
from mindchat.prompts.core.layouts import AssistantRole, UserRole, continued, explanation, extraction

__all__ = [
    "AssistantRole",
    "UserRole",
    "continued",
    "copies_of",
    "documents",
    "escaped",
    "explanation",
    "extraction",
    "memory_block",
    "ordered",
]
