"""The Uncertainty pane: every word by its score S = H · a · s against the threshold of its sentence (MIND §3.2, Eq
1–3).

Owns: how scores become symbols, weight and numbers (never colour alone), and the word cursor. Does not own: the scores
(Verdict). A word carries ▁…█ for S/θ; from half of θ on it is underlined and shows S; from θ on it is bold and marked
▲.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from mindchat.text.clean import Cleaner
from mindchat.trace import SentenceView, Trace
from mindchat.tui.drawable import ACCENT, BAD, FAINT, GOOD, MUTED, STRUCK, WARN, block, level, line, lines, short, spark
from mindchat.tui.widgets.pane import Pane
from mindchat.values import Token, WordScore

NEAR = 0.5
"""Share of θ from which a word is pointed out."""
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}
READ = "This answer was read from sentences of your documents. No model wrote it, so no word of it was measured."
CERTAIN = 3.0
"""Entropy (nats) drawn as a full cell while a sentence is not judged yet."""


def share(word: WordScore, threshold: float | None) -> float:
    """S as a share of θ; of 1 if the policy has no threshold."""
    return word.score / threshold if threshold else word.score


def painted_word(word: WordScore, threshold: float | None, chosen: bool = False) -> Content:
    """One word with symbol, weight and number."""
    part = share(word, threshold)
    if not word.content or word.score <= 0:
        content = line((word.text, MUTED))
    elif part >= 1:
        content = line((word.text, f"bold underline {BAD}"), (f"▲{word.score:.2f}", f"bold {BAD}"))
    elif part >= NEAR:
        content = line((word.text, f"underline {WARN}"), (f"{level(part)}{word.score:.2f}", WARN))
    else:
        content = line(word.text, (level(part), FAINT))
    return content.stylize("reverse") if chosen else content


def painted_sentence(view: SentenceView, chosen: int | None = None) -> Content:
    """The sentence's words in place, with the text between them; what was withdrawn is struck."""
    verdict, at, parts = view.verdict, len(view.text) - len(view.text.lstrip()), []
    cut = verdict.trigger.start if verdict.trigger is not None and view.retracted else len(view.text) + 1
    for index, word in enumerate(verdict.words):
        parts.append(line((view.text[at : word.start], MUTED)))
        content = painted_word(word, verdict.threshold, index == chosen)
        parts.append(content.stylize("strike") if word.start >= cut else content)
        at = word.end
    parts.append(line((view.text[at:], STRUCK if at >= cut else MUTED)))
    return block(*parts)


def painted_terms(view: SentenceView) -> Content:
    """θ and the factors it recomputes from."""
    verdict = view.verdict
    if verdict.threshold is None:
        return line(("no threshold", FAINT))
    terms = "  ".join(f"{GREEK.get(name, name.replace('_', ' '))} {value:.2f}" for name, value in verdict.terms)
    return line((f"θ {verdict.threshold:.2f}", "bold"), (f"  {terms}", MUTED))


def painted_outcome(view: SentenceView) -> Content:
    """Whether the sentence stayed, and what made it go."""
    trigger = view.verdict.trigger
    if trigger is None:
        return line(("✓ below the threshold, kept" if view.accepted else "✓ below the threshold", GOOD))
    against = f" ≥ θ {trigger.threshold:.2f}" if trigger.threshold is not None else ""
    row = line(
        ("◆ look it up: ", f"bold {BAD}"), (f"“{trigger.word}”", "bold"), (f"  S {trigger.score:.2f}{against}", BAD)
    )
    return lines([row, line(("  withdrawn from here on", MUTED))]) if view.retracted else row


def painted_drafting(tokens: tuple[Token, ...]) -> Content:
    """Words that no policy has judged yet, by entropy alone."""
    parts: list[tuple[str, str]] = []
    cleaner = (
        Cleaner()
    )  # a control sequence may be split over tokens, and marks between them would hide its parts from clean()
    for token in tokens:
        text = cleaner.feed(token.text)
        parts.append((text, ""))
        if token.entropy is not None and text.strip():
            parts.append((level(token.entropy / CERTAIN), FAINT))
    return block(*parts)


def painted_answer(tokens: tuple[Token, ...]) -> list[Content]:
    """The answer's own words by entropy: no policy judges them, but every policy, also one that does not reason, ends
    in them.
    """
    measured = [token for token in tokens if token.entropy is not None]
    if not measured:
        return []
    mean = sum(token.entropy or 0.0 for token in measured) / len(measured)
    peak = max(measured, key=lambda token: token.entropy or 0.0)
    head = line(("answer ", f"bold {ACCENT}"), ("entropy only, in nats", FAINT))
    foot = line(
        ("mean ", MUTED),
        f"{mean:.2f}",
        ("  peak ", MUTED),
        f"{peak.entropy:.2f}",
        (f" at “{short(peak.text.strip(), 24)}”", MUTED),
    )
    return [line(""), head, painted_drafting(tokens), foot]


def turn_scores(trace: Trace) -> list[float]:
    """S/θ of every content word of the turn, in order; entropies of words still being drafted follow."""
    judged = [
        share(word, view.verdict.threshold) for view in trace.sentences for word in view.verdict.words if word.content
    ]
    return judged + [token.entropy / CERTAIN for token in trace.drafting if token.entropy is not None]


def number(value: float | None) -> str:
    """Three decimals, – if it was not measured."""
    return "–" if value is None else f"{value:.3f}"


def painted_detail(word: WordScore, threshold: float | None) -> Content:
    """Every factor of one word."""
    counts = "yes" if word.content else "no (stop word, mark or name from the question)"
    return lines(
        [
            line(("▸ ", ACCENT), (short(word.text, 40), f"bold {ACCENT}")),
            line(("  entropy H ", MUTED), f"{number(word.entropy)} nats"),
            line(("  attention a ", MUTED), number(word.attention), (f"  raw {number(word.attention_raw)}", FAINT)),
            line(("  counts s ", MUTED), counts),
            line(("  score S = H·a·s ", MUTED), (f"{word.score:.3f}", "bold"), (f"  θ {number(threshold)}", MUTED)),
        ]
    )


class Uncertainty(Pane):
    """Where the model was unsure."""

    NAME, KEY = "Uncertainty", "F2"
    EMPTY = "Ask something: each word appears here with how unsure the model was of it."
    FOLLOWS = True
    HELP = """\
# Uncertainty
Every word of the model's reasoning with its score S = H · a · s: entropy, attention received, and 1 or 0 for words that count.

`▁`…`█` is S against the sentence's threshold θ · underlined: at least half of θ · **bold ▲**: at or over θ, so MindChat looks it up.

The answer's words stand last, by entropy alone: no policy judges them.

`←` `→` walk through the words; the numbers of the chosen word stand below the turn's sparkline.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Word ←", id="uncertainty.previous", show=True),
        Binding("right", "step(1)", "Word →", id="uncertainty.next", show=True),
    ]

    def __init__(self, *, id: str = "uncertainty") -> None:
        super().__init__(id=id)
        self._cursor: int | None = None

    def show(self, trace: Trace) -> None:
        """A new turn starts without a chosen word."""
        if trace.started is not self.trace.started:
            self._cursor = None
        super().show(trace)

    def _places(self) -> list[tuple[int, int]]:
        return [(s, w) for s, view in enumerate(self.trace.sentences) for w in range(len(view.verdict.words))]

    def action_step(self, by: int) -> None:
        """Choose the next or previous word."""
        if places := self._places():
            start = len(places) if self._cursor is None and by < 0 else -1 if self._cursor is None else self._cursor
            self._cursor = max(0, min(len(places) - 1, start + by))
            self.repaint()

    def painted(self) -> Content | None:
        """Sparkline, the chosen word, sentences, the draft."""
        trace = self.trace
        if not (trace.sentences or trace.drafting or trace.answer_tokens):
            told = trace.answer is not None and not trace.answer.abstained
            return line((READ, FAINT)) if trace.slots and told and not trace.calls else None
        rows: list[Content] = []
        if scores := turn_scores(trace):
            rows.append(
                line(("turn ", MUTED), (spark(scores, self.body_width - 8, max(1.0, *scores)), ACCENT), (" S/θ", FAINT))
            )
        chosen = (
            self._places()[self._cursor] if self._cursor is not None and self._cursor < len(self._places()) else None
        )
        if chosen is not None:
            view = trace.sentences[chosen[0]]
            rows.append(painted_detail(view.verdict.words[chosen[1]], view.verdict.threshold))
        for place, view in enumerate(trace.sentences):
            rows += [
                line(""),
                line(
                    (f"{place + 1}", f"bold {MUTED}"),
                    (f" hop {view.hop}  " if view.hop else "  ", FAINT),
                    painted_terms(view),
                ),
            ]
            rows += [
                painted_sentence(view, chosen[1] if chosen is not None and chosen[0] == place else None),
                painted_outcome(view),
            ]
        if trace.drafting and not (trace.sentences and trace.sentences[-1].tokens == trace.drafting):
            rows += [
                line(""),
                line(("now ", f"bold {ACCENT}"), ("entropy only, judged at the sentence's end", FAINT)),
                painted_drafting(trace.drafting),
            ]
        return lines(rows + painted_answer(trace.answer_tokens))
