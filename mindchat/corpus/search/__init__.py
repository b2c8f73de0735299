"""Search: from terms to ranked passages.

Owns: the analysis of text, the index on disk and its generations, BM25F, the impact matrix, Milvus. Does not own: reading files (corpus.reading).
"""
