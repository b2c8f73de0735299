"""A document in other words: what CoRe's ablation repeats instead of the document itself.

Owns: the prompts for paraphrase and summary. Does not own: keeping the results (engine.rewording), where they stand
(prompts.core).
Source: CoRe Tables 12 and 13, quoted as the method's own; Table 13's first letter is lost in the paper's text and
restored here.
"""

from __future__ import annotations

from mindchat.values import Message, Prompt, Text

PARAPHRASE = """\
You are a professional paraphraser. Your task is to paraphrase the given text based on the below instructions. \
Follow the instructions to achieve the desired output.

- Objective: Rewrite the text more thoroughly, changing both vocabulary and sentence structure while preserving the original meaning.

- Instructions: (MOST IMPORTANT) Use your own style for natural paraphrase

Introduce new expressions, alter sentence structure, and rearrange clauses.

Use synonyms and change the form of words (e.g., verbs to nouns, or active to passive voice).

Retain the original message but express it in a noticeably different way.

- Example:

Original: "The quick brown fox jumps over the lazy dog."

Paraphrase: "With swift movements, the brown fox leaps over the dog lying lazily."

# Format of the paraphrasing task

- Original: The original text.

- Paraphrase: The paraphrased version of the text based on the above guideline. Provide the output text immediately."""
"""Table 12, system role."""

SUMMARY = """\
Summarize the following text while ensuring that no key information, factual accuracy, or essential meaning is lost. Follow these guidelines:

- Maintain Key Details: All critical points, facts, and arguments from the original text must be preserved.

- Conciseness: The summary should be significantly shorter than the original text while capturing its essence. \
- Clarity and Precision: Use clear, professional language. Avoid vague phrasing.

- No Alteration of Meaning: Do not add, alter, or infer information that is not present in the original text.

Please follow below pattern of example. Provide the output text immediately.

- Example:

Original Text: The rapid development of artificial intelligence over the last decade has led to significant breakthroughs in various fields, \
including healthcare, finance, and transportation. However, these advancements also raise concerns about data privacy, job displacement, \
and the ethical use of AI technologies.

Summary: AI advancements in healthcare, finance, and transportation have been substantial, though concerns about data privacy, \
job displacement, and ethical issues have emerged."""
"""Table 13, system role."""

KINDS = ("paraphrase", "summary")
"""Values of layout.as that need one model call a document."""


def rewrite_document(kind: str, text: str) -> Prompt:
    """The call that puts one document in other words; `kind` is one of KINDS. The system turn is shared by all
    documents.
    """
    if kind == "paraphrase":
        system, user, prefill = PARAPHRASE, f"Paraphrase the original text below.\n\nOriginal: {text}", "Paraphrase:"
    else:
        system, user, prefill = SUMMARY, f"Summarize the following text below.\n\nOriginal Text: {text}", "Summary:"
    return Prompt(
        (
            Message("system", (Text(system),)),
            Message("user", (Text(user, "passage"),)),
            Message("assistant", (Text(prefill),)),
        )
    )
