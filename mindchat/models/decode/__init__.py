"""Decoding: from logits to text. Greedy steps, samples, scores of given options, stop strings, chat templates.

Owns: which token comes next and which characters it makes. Does not own: the network that gives logits
(models.network).
"""
