"""The corpus room: from files to passages, and from a query to the passages that match it.

Owns: readers, chunking, ingestion, the search index. Does not own: the registry (memory room), which documents a user
wants, prompts. Nothing is imported here, so that naming the package costs nothing; take what you need from its modules:
`ingest.ingest`, `ingest.sync`, `index.Index`, `chunk.Chunker`, `readers.READERS`.
"""
