"""Methods that ask themselves: self-ask writes follow-up questions as it goes, decompose writes its sub-questions
first.

Owns: the policies selfask and decompose, and parsing a numbered list. Does not own: their prompts (prompts.methods).
Source: Press et al. 2023 (arXiv:2210.03350); CoRe Table 8 and Appendix E. The original self-ask pastes the search
engine's snippet as the intermediate answer; here the passages are shown and the model writes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindchat.config import Config
from mindchat.policies.base import Base, scheduled
from mindchat.ports import Ask
from mindchat.prompts.methods import decompose_prompt, planned, restyled
from mindchat.text.clean import clean_line
from mindchat.values import Draft, Entity, Prompt, Query, Relation, Trigger, TurnState, Verdict

_FOLLOW_UP = re.compile(r"^\s*follow[ -]?up(?: question)?s?\s*:\s*(.+)$", re.IGNORECASE | re.DOTALL)
_MARK = re.compile(r"^\s*(?:\(?\d{1,2}[.):]+|[-*•–])\s*")
PLAN_TOKENS = 96
MAX_QUESTIONS = 5


def follow_up(sentence: str) -> str:
    """The question of a line "Follow up: …"; "" if it is none."""
    match = _FOLLOW_UP.match(sentence)
    return clean_line(match[1]) if match else ""


class SelfAsk(Base):
    """Each "Follow up:" line is a sub-query; nothing is retracted."""

    name = "selfask"

    def lay(self, prompt: Prompt) -> Prompt:
        """The method's own exemplars; the assistant's turn begins with the sentence that they share."""
        return restyled(prompt, "selfask")

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """A follow-up question that can be asked."""
        del hop, ask
        asked = any(map(self.words.content, follow_up(draft.text).split()))
        return Verdict(
            formula="every follow-up question", trigger=scheduled(draft, "a follow-up question") if asked else None
        )

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """That question."""
        del trigger, kept, relations, ask
        return Query(follow_up(draft.text) or hop.question, "model")


def parse_questions(text: str) -> list[str]:
    """The questions of a list: "1.", "1)", "-" or no mark; lines without a letter and repetitions are left out.
    Tolerates a list of one.
    """
    lines = [
        clean_line(_MARK.sub("", line)).strip('*_ "') for line in re.split(r"\n|(?<=\?)\s+(?=\(?\d{1,2}[.)])", text)
    ]
    # what ends with a colon introduces the list
    usable = [line for line in lines if any(char.isalpha() for char in line) and not line.endswith(":")]
    return list(dict.fromkeys(usable))[:MAX_QUESTIONS]


class Decompose(Base):
    """One call writes the sub-questions; the reasoning follows them, with a search for each."""

    name = "decompose"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._plan: list[str] = []
        self._next = 0

    def lay(self, prompt: Prompt) -> Prompt:
        """With the sub-questions after the question."""
        return planned(prompt, self._plan) if self._plan else prompt

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """Write the plan, tell it, and search for its first question; without a plan, for the question."""
        reply = ask.complete(decompose_prompt(hop.question), max_tokens=PLAN_TOKENS, kind="decompose", stop=("\n\n",))
        self._plan, self._next = parse_questions(f"1.{reply.text}"), 1
        if not self._plan:
            ask.note("Decomposition: no sub-question could be read; the question itself is searched for.")
            return Query(hop.question, "question")
        ask.note("Sub-questions: " + " ".join(f"{n}. {question}" for n, question in enumerate(self._plan, 1)))
        return Query(self._plan[0], "model")

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """While sub-questions are left and the answer is not stated, each sentence is followed by the next one's
        search.
        """
        del hop, ask
        left = self._next < len(self._plan) and not self.words.answered(draft.text)
        return Verdict(
            formula="every sub-question", trigger=scheduled(draft, f"sub-question {self._next + 1}") if left else None
        )

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """The next sub-question."""
        del trigger, draft, kept, relations, hop, ask
        self._next += 1
        return Query(self._plan[self._next - 1], "model")
