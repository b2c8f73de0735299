"""Probe `noise`: the supporting documents among more and more others, read once and repeatedly.

Owns: which noise stands where. Source: CoRe §4.3 asks what noise does to repetition, on its lists (here: probe
`lists`); this asks the same of real questions. Larger amounts of noise contain the smaller ones, and documents keep the
order of the question's own context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from mindchat.lab.probes.asking import copies, curves, read
from mindchat.lab.probes.cases import Case, Cell, Options, Panel, Record
from mindchat.lab.probes.questions import Layout, Study, studies
from mindchat.ports import Cancel, Model
from mindchat.values import Prompt

AMOUNTS = (0, 1, 2, 4, 8, 16)


class Noise:
    """See the module."""

    name = "noise"
    about = (
        "F1 and probability of the gold answer with 0 to 16 documents beside the supporting ones, with and without"
        " repetition (after CoRe §4.3)."
    )
    defaults = Options(n=10, repeats=(0, 1))
    uses: tuple[str, ...] = ()
    by_group = True

    def cases(self, options: Options) -> Iterator[Case]:
        """Questions with at least 8 other documents; amounts that a question does not have are left out."""
        layout = Layout(options.role)

        def fits(study: Study) -> bool:
            return len(study.noise) >= AMOUNTS[-2]

        for study in studies(options, fits):
            item, cells = study.item, []
            for amount in (amount for amount in AMOUNTS if amount <= len(study.noise)):
                chosen = {*study.supports, *study.noise[:amount]}
                shown = [source for source in item.example.context if source in chosen]
                for repeat in options.repeats:
                    lay = partial(layout.prompt, item.example.question, shown, repeat)
                    cells.append(Cell(f"n{amount}/r{repeat}", repeat, amount, lay, item.gold.answers))
            yield Case(item.example.id, study.group, tuple(cells), item.example.dataset)

    def measure(
        self, case: Case, cell: Cell, prompt: Prompt, model: Model, cancel: Cancel
    ) -> tuple[str, dict[str, float]]:
        """Probability of the gold answer, then the answer."""
        return read(case, cell, prompt, model, cancel)

    def panels(self, records: Sequence[Record]) -> tuple[Panel, ...]:
        """F1 and gold probability, a curve for each number of repetitions."""
        f1, probability = (
            curves(records, value, lambda record: copies(record.repeat), lambda record: record.at)
            for value in ("f1", "probability")
        )
        return (
            Panel("F1 among noise", "documents beside the supporting ones", "F1, %", f1),
            Panel(
                "Probability of the gold answer", "documents beside the supporting ones", "probability, %", probability
            ),
        )
