"""The tables of facts: writing, recalling, removing, taking back.

Owns: rows and their rules. Does not own: what is learned (memory.learning) or the commands (memory.verbs).
"""
