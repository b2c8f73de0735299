"""Search: from a typed line to ranked passages.

Owns: reading the query, the analysis of text, the index on disk and its generations, BM25F, the name graph and the
rankers that follow it, names that no document has, Milvus. Does not own: reading files (corpus.reading).
Reading order: analyze, bm25f, impact_matrix; names, graph (with weave), links, pagerank, rankers; queries, narrow,
near.
"""
