"""IRCoT: retrieval and reasoning take turns, sentence by sentence; passages add up; a reader answers from them.

Owns: the policy ircot. Does not own: the reader (the loop's answer call, which sees the collected passages and the
reasoning).
Source: arXiv:2212.10509 §3: question first, then the last sentence as query, at most 15 paragraphs. A sentence that
only concludes or calculates is no query. The loop's limits stand in for its 10 sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindchat.policies.base import Base, scheduled
from mindchat.ports import Ask
from mindchat.text.clean import clean_line
from mindchat.values import Draft, Entity, Passage, Query, Relation, Trigger, TurnState, Verdict

MOST_PASSAGES = 15
LONGEST_PASSAGE = 350
"""Words; a longer paragraph is not collected."""
_ARITHMETIC = re.compile(r"^[\s\d.,()]*\d[\d\s.,()]*[-+*/=<>]")


class Ircot(Base):
    """One search per sentence until the answer is stated."""

    name = "ircot"
    cap = MOST_PASSAGES

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question."""
        del ask
        return Query(hop.question, "question")

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """After every sentence that does not state the answer."""
        del hop, ask
        done = self.words.answered(draft.text)
        return Verdict(formula="every sentence", trigger=None if done else scheduled(draft, "every sentence"))

    def _reasons_only(self, sentence: str) -> bool:
        first = sentence.split(" ", 1)[0].strip(",").casefold()
        return first in self.words.reasoning_openers or _ARITHMETIC.match(sentence) is not None

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """The newest sentence that is not pure reasoning; the question if there is none."""
        del trigger, kept, relations, ask
        for sentence in (draft.text, *reversed(hop.sentences)):
            text = clean_line(sentence)
            if any(map(self.words.content, text.split())) and not self._reasons_only(text):
                return Query(text, "sentence")
        return Query(hop.question, "question")

    def which(self, found: Sequence[Passage], hop: TurnState, ask: Ask) -> Sequence[Passage]:
        """Without overlong paragraphs and without copies of what is there (equal words)."""
        del ask
        seen = {clean_line(p.text).casefold() for p in hop.passages}
        chosen = []
        for passage in found:
            text = clean_line(passage.text).casefold()
            known = any(p.id == passage.id for p in hop.passages)
            if len(text.split()) <= LONGEST_PASSAGE and (known or text not in seen):
                chosen.append(passage)
                seen.add(text)
        return chosen
