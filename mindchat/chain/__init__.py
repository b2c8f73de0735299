"""Questions that code can follow: a question as a chain of slots, each read from a sentence, compared where it asks so.

Owns: the plan of a question (plan), its parse (parse), reading one relation from a passage (reading), following a plan
over search (follow). Does not own: search, memory, the model: a plan that cannot be followed is simply not followed.
Source: MIND §3.4, which splits a question into slots that memory and index answer one by one; the reading by patterns
is ours.
"""
