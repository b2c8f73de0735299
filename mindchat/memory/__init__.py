"""Memory: facts with their sources, the document registry and the chats, all in SQLite.

Owns: memory.db and chats.db, their schema, what may be learned, what may be served, and what is forgotten.
Does not own: the full-text index over documents (corpus), prompts (prompts), when to recall (engine).
"""
