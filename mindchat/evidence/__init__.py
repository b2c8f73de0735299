"""What of the found passages answers a question, what kind of answer it asks for, and whether the passages can answer
it at all.

Owns: choosing sentences (select), the asked type (asking), whether an answer is of it (fitting), answerability
(answerable). Pure: no model call, no store. Does not own: the search (corpus), the prompt (prompts), what is done with
a refusal (engine).
Reading order: asking, sentences, select; fitting; features, answerable.
"""

from mindchat.evidence.asking import Asked, Asking, asking
from mindchat.evidence.select import select

__all__ = ["Asked", "Asking", "asking", "select"]
