"""The words of CoRe's templates, with straight quotation marks.

Owns: the sentences of Tables 4, 5, 7 and 11 (instructions to a model, quoted as the method's own) and the few of ours
beside them. Deviations: the lead of a repeated copy is the same for every copy ("once more"); Table 5's "{t} times
more" would change the prompt's early words with t, so that nothing computed for t copies could serve t + 1.
"""

from __future__ import annotations

INSTRUCTION = (
    "Answer the question based on the given documents. Respond only the answer within a few words after 'Answer:'."
)
"""Table 4 and Table 11."""
SHORT_SYSTEM = "Answer the question from the documents. Give only the short answer: a name, a date, a number, a place, or yes or no."
"""Ours, for order = question_last."""
SHORT_BARE_SYSTEM = "Answer the question. Give only the short answer: a name, a date, a number, a place, or yes or no."
"""Ours: the same without documents."""
NO_DOCUMENTS = "Answer the question. Respond only the answer within a few words after 'Answer:'."
"""Ours: the same without documents."""
AGAIN_USER = "Look again the input prompt:"
"""Table 11."""
AGAIN_ASSISTANT = "Sure. Before answering the question, I'll reconsider the question and the documents once more."
"""Table 4; said before every copy, so that more copies extend fewer."""
NOW = "Now answer the question based on the documents. Respond only the answer within a few words after 'Answer:'."
"""Table 4."""
PREFILL = "Answer:"

THINK_INSTRUCTION = "Answer the question based on the given documents."
"""Table 7."""
THINK_NO_DOCUMENTS = "Answer the question."
"""Ours: the same without documents."""
THINK_NOW = "Now answer the question based on the documents."
"""Table 7."""
THINK_PREFILL = "Let's think step by step."
"""Table 7."""
EXTRACT = "Respond only the answer in a few words after 'Answer:'."
"""Table 7, second part."""

FULL_INSTRUCTION = (
    "Answer the question based on the given documents, in plain words and whole sentences. Write a list or code where"
    " the question asks for it. After each claim give the number of the document that says it, for example [0]."
)
"""Ours: for questions that a few words cannot answer."""
FULL_NO_DOCUMENTS = (
    "Answer the question in plain words and whole sentences. Write a list or code where the question asks for it."
)
"""Ours: the same without documents."""
FULL_NOW = (
    "Now answer the question based on the documents, in plain words and whole sentences, each claim with the number of"
    " its document."
)
"""Ours, after the words of Table 4."""
BECAUSE = "\nBecause:"
"""Ours: what follows the short answer when it is to be explained."""

LISTS_HEAD = "All the {k} lists described in the below contain exactly {n} elements."
"""Table 5."""
LISTS_FACT = "In the list {i}, {a} is positioned immediately before {b}."
"""Table 5."""
LISTS_QUESTION = "What is the first element of the list that contains {last}?"
"""Table 5."""
LISTS_INSTRUCTION = (
    "Answer the question based on the given information. Respond only the answer without any explanation after"
    " 'Answer:'."
)
"""Table 5."""
LISTS_NOW = (
    "Now answer the question based on the documents. Respond only the answer without any explanation after 'Answer:'."
)
"""Table 5."""
