"""Text: one place for what every room does with words.

Owns: cleaning for terminals, folding, sentence ends, names, dates, numbers, and the data of each language.
Does not own: the model's tokens (models.decode).
"""
