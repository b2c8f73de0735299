"""Storage: SQLite files, their schemas and migrations, the document registry, chats, files of JSON lines.

Owns: how bytes are kept so that a kill loses nothing. Does not own: what a fact means (memory) or how documents are
searched (corpus).
"""
