"""Who says the copies: the answer prompt in both roles, with and without reasoning before it, and the reasoning prompt.

Owns: the order of question, documents, memory and notes in a copy, and of the messages. Does not own: the words
(wording), passages (blocks).
Source: CoRe Tables 4 (assistant role), 11 (user role), 7 (chain of thought); Appendix E for the reasoning prompt, which
repeats the passages with the reasoning so far if layout.reasoning asks for it (the paper prints no template for it:
this one is ours). layout.order = "docs_first", a deviation: the documents stand before the conversation and the
question, so that a later question over them starts from what is computed already. layout.order = "question_last", ours:
the instruction is the system's message, the copies of the documents follow each other, the question stands once, at the
end, where a small model reads it best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mindchat.config import Config
from mindchat.prompts.core import wording as w
from mindchat.prompts.core.blocks import documents, ended, escaped, memory_block, ordered
from mindchat.prompts.side import exemplars
from mindchat.values import Draft, Kept, Message, Prompt, Segment, Text, TurnState

History = Sequence[tuple[str, str]]
Told = Mapping[str, str] | None
"""What the repeated copies say of each passage, by id; passages without entry are not repeated. None: the same as the
first copy.
"""


class _Words(Struct, frozen=True):
    """What differs between answering at once and thinking first."""

    instruction: str
    bare: str
    system: str
    """The instruction of order = question_last."""
    bare_system: str
    """The same without documents."""
    now: str
    prefill: str


_ANSWER = _Words(w.INSTRUCTION, w.NO_DOCUMENTS, w.SHORT_SYSTEM, w.SHORT_BARE_SYSTEM, w.NOW, w.PREFILL)
_FULL = _Words(w.FULL_INSTRUCTION, w.FULL_NO_DOCUMENTS, w.FULL_INSTRUCTION, w.FULL_NO_DOCUMENTS, w.FULL_NOW, w.PREFILL)
_THINK = _Words(
    w.THINK_INSTRUCTION, w.THINK_NO_DOCUMENTS, w.THINK_INSTRUCTION, w.THINK_NO_DOCUMENTS, w.THINK_NOW, w.THINK_PREFILL
)


class _Layout:
    """What both roles share."""

    def __init__(self, config: Config) -> None:
        self.layout = config.layout
        self.seed = config.engine.seed
        self.notes = config.answer.reasoning
        self.first = config.layout.order == "docs_first"
        self.last = config.layout.order == "question_last"
        repeat = config.layout.repeat
        self.steps = 0 if config.layout.reasoning == "once" else repeat if isinstance(repeat, int) else 1
        """Repetitions in the reasoning prompt."""

    def reasoning(self, hop: TurnState, kept: Sequence[Draft], history: History) -> Prompt:
        """Exemplars, documents, question, and the accepted reasoning by its own token ids in an open assistant turn.

        The order (stable first, newest last) lets a new hop share its prefix with the one before. Repeated, each copy
        but the last is followed by the whole sentences accepted so far, as notes; after the last copy they stand in the
        assistant's turn, to be continued.
        """
        data = exemplars("reasoning")
        messages = [Message("system", (Text(data["system"]),))]
        for shot in data["shots"]:
            messages += [
                Message("user", (Text(f"Question: {shot['question']}", "exemplar"),)),
                Message("assistant", (Text(shot["answer"], "exemplar"),)),
            ]
        messages += self._history(history)
        messages += self._steps(hop, self.steps if hop.passages else 0)
        messages.append(Message("assistant", tuple(Kept(draft.ids, draft.text) for draft in kept if draft.tokens)))
        return Prompt(tuple(messages))

    def answer(self, hop: TurnState, copies: int, history: History, told: Told = None) -> Prompt:
        """The prompt that ends in "Answer:", with `copies` repetitions of the context."""
        return self._prompt(hop, copies, history, told, _ANSWER)

    def think(self, hop: TurnState, copies: int, history: History, told: Told = None) -> Prompt:
        """The prompt that ends in "Let's think step by step." (Table 7); extraction() asks for the answer afterwards."""
        return self._prompt(hop, copies, history, told, _THINK)

    def full(self, hop: TurnState, copies: int, history: History, told: Told = None) -> Prompt:
        """The prompt that asks for sentences instead of a few words; it ends in "Answer:" too."""
        return self._prompt(hop, copies, history, told, _FULL)

    def _prompt(self, hop: TurnState, copies: int, history: History, told: Told, words: _Words) -> Prompt:
        prefill = Message("assistant", (Text(words.prefill),))
        if self.last:
            system = Message("system", (Text(words.system if hop.passages else words.bare_system),))
            copies = copies if hop.passages else 0
            return Prompt((system, *self._history(history), *self._question_last(hop, copies, told, words), prefill))
        turns = self._turns(hop, copies if hop.passages else 0, told, words)
        messages = [*self._history(history), *turns, prefill]
        if self.first and hop.passages:
            opening = messages[0]
            messages[0] = Message(opening.role, (*documents(list(enumerate(hop.passages)), 0), *opening.segments))
        return Prompt(tuple(messages))

    def _turns(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        raise NotImplementedError

    def _question_last(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        raise NotImplementedError

    def _steps(self, hop: TurnState, copies: int) -> list[Message]:
        raise NotImplementedError

    def _step(self, hop: TurnState, copy: int, *, last: bool) -> list[Segment]:
        """Documents, memory and question of the reasoning prompt, and in all copies but the last the reasoning so far."""
        body = documents(ordered(hop.passages, self.layout.as_, copy, self.seed), copy)
        body += memory_block(hop.facts, copy)
        body.append(Text(f"Question: {escaped(hop.question)}", "question", copy=copy))
        said = " ".join(sentence.strip() for sentence in hop.sentences)
        if said and not last:
            body.append(Text(f"\n\nNotes: {escaped(said)}", "reasoning", copy=copy))
        return body

    def _history(self, history: History) -> list[Message]:
        turns: list[Message] = []
        for asked, answered in history:
            turns += [
                Message("user", (Text(f"Question: {escaped(asked)}", "history"),)),
                Message("assistant", (Text(f"So the answer is {answered.rstrip('.')}.", "history"),)),
            ]
        return turns

    def _copy(self, hop: TurnState, copy: int, told: Told) -> list[Segment]:
        """Question, documents, memory and notes: one presentation of the context. The first one is never retold.

        With documents first, those of copy 0 are put in front of the whole conversation by _prompt().
        """
        question: list[Segment] = [Text(f"Question: {escaped(hop.question)}\n\n", "question", copy=copy)]
        return (
            [*self._context(hop, copy, told), *question] if self.first else [*question, *self._context(hop, copy, told)]
        )

    def _context(self, hop: TurnState, copy: int, told: Told) -> list[Segment]:
        """Documents, memory and notes of one copy."""
        shown: list[Segment] = []
        if hop.passages and (copy or not self.first):
            shown = documents(ordered(hop.passages, self.layout.as_, copy, self.seed), copy, told if copy else None)
        known = memory_block(hop.facts, copy)
        if self.notes and hop.accepted.strip():
            known.append(Text(f"Notes: {escaped(hop.accepted.strip())}\n\n", "reasoning", copy=copy))
        return [*shown, *known]

    def _asked(self, hop: TurnState, copy: int) -> Text:
        return Text(f"Question: {escaped(hop.question)}", "question", copy=copy)


class UserRole(_Layout):
    """Table 11: the whole prompt again in the same user turn."""

    def _question_last(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        body = [segment for copy in range(copies + 1) for segment in self._context(hop, copy, told)]
        return [Message("user", (*body, self._asked(hop, 0)))]

    def _turns(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        body: list[Segment] = []
        instruction = words.instruction if hop.passages else words.bare
        for copy in range(copies + 1):
            if copy:
                body.append(Text(f"\n\n{w.AGAIN_USER}\n\n", copy=copy))
            body += [*self._copy(hop, copy, told), Text(instruction, copy=copy)]
        return [Message("user", tuple(body))]

    def _steps(self, hop: TurnState, copies: int) -> list[Message]:
        body: list[Segment] = []
        for copy in range(copies + 1):
            if copy:
                body.append(Text(f"\n\n{w.AGAIN_USER}\n\n", copy=copy))
            body += self._step(hop, copy, last=copy == copies)
        return [Message("user", tuple(body))]


class AssistantRole(_Layout):
    """Table 4: the assistant repeats question and documents, then is told to answer."""

    def _question_last(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        turns = [Message("user", (*self._context(hop, 0, told), self._asked(hop, 0)))]
        if copies:
            body: list[Segment] = []
            for copy in range(1, copies + 1):
                body += [Text(f"{w.AGAIN_ASSISTANT}\n\n", copy=copy), *self._context(hop, copy, told)]
            turns += [Message("assistant", ended(body)), Message("user", (Text(words.now),))]
        return turns

    def _turns(self, hop: TurnState, copies: int, told: Told, words: _Words) -> list[Message]:
        turns = [Message("user", (*self._copy(hop, 0, told), Text(words.instruction if hop.passages else words.bare)))]
        if copies:
            body: list[Segment] = []
            for copy in range(1, copies + 1):
                body += [Text(f"{w.AGAIN_ASSISTANT}\n\n", copy=copy), *self._copy(hop, copy, told)]
            turns += [Message("assistant", ended(body)), Message("user", (Text(words.now),))]
        return turns

    def _steps(self, hop: TurnState, copies: int) -> list[Message]:
        turns = [Message("user", tuple(self._step(hop, 0, last=not copies)))]
        if copies:
            body: list[Segment] = []
            for copy in range(1, copies + 1):
                lead = f"{w.AGAIN_ASSISTANT}\n\n" if copy == 1 else f"\n\n{w.AGAIN_ASSISTANT}\n\n"
                body += [Text(lead, copy=copy), *self._step(hop, copy, last=copy == copies)]
            turns += [Message("assistant", tuple(body)), Message("user", (Text(w.THINK_NOW),))]
        return turns


def explanation(answering: Prompt, said: Segment) -> Prompt:
    """The answer prompt, the short answer that was `said`, and the beginning of the sentences that explain it; nothing
    before them changes.
    """
    *before, prefill = answering.messages
    return Prompt((*before, Message("assistant", (*prefill.segments, said, Text(w.BECAUSE)))))


def continued(prompt: Prompt, draft: Draft) -> Prompt:
    """The prompt with what was generated from it, by its own ids, to be continued."""
    *before, prefill = prompt.messages
    return Prompt((*before, Message("assistant", (*prefill.segments, Kept(draft.ids, draft.text)))))


def extraction(thinking: Prompt, thought: Draft) -> Prompt:
    """Table 7, second part: the thinking prompt, what was thought (by its own ids), and the request for the short
    answer.

    Nothing of the first part changes, so that its keys and values serve the second call as they are.
    """
    *before, prefill = thinking.messages
    said = Message(
        "assistant", (*prefill.segments, Kept(thought.ids, thought.text)) if thought.tokens else prefill.segments
    )
    return Prompt((*before, said, Message("user", (Text(w.EXTRACT),)), Message("assistant", (Text(w.PREFILL),))))
