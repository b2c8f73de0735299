"""Reading: which files are documents, and their text.

Owns: the walk over folders, the readers of each format, the child process that runs them.
Does not own: passages (corpus.chunk) or the index (corpus.search).
"""
