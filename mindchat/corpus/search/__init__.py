"""Search that follows names: what passages are about, who names whom, and the rankers that use it.

Reading order: names, graph (with weave), links, pagerank, rankers. Nothing here knows which engine scores the words.
"""
