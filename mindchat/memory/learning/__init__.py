"""Learning: from an answered hop to a fact that may be kept.

Owns: slots, grounding in a passage, verification, confidence, what may never be written. Does not own: the tables
(memory.tables).
"""
