"""Probe `position`: the supporting documents side by side, moved through the context; is the middle read worse, and
does repeating help?

Owns: the placing. Source: CoRe §5.1, Figure 7: k concatenated supports of MuSiQue moved from position 0 to 18 by 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from mindchat.lab.probes.asking import copies, curves, read
from mindchat.lab.probes.cases import Case, Cell, Options, Panel, Record
from mindchat.lab.probes.questions import Layout, Study, studies
from mindchat.ports import Cancel, Model
from mindchat.values import Prompt

PLACES = range(0, 19, 2)
FEWEST = 6
"""A question needs room for this last position at least."""


class Positions:
    """See the module."""

    name = "position"
    about = (
        "F1 and probability of the gold answer with the supporting documents side by side at position 0 to 18 by 2, "
        "with and without repetition (CoRe §5.1)."
    )
    defaults = Options(n=10, repeats=(0, 1))
    uses: tuple[str, ...] = ()
    by_group = True

    def cases(self, options: Options) -> Iterator[Case]:
        """Positions up to the number of other documents; later ones do not exist for that question."""
        layout = Layout(options.role)

        def fits(study: Study) -> bool:
            return len(study.noise) >= FEWEST

        for study in studies(options, fits):
            item, cells = study.item, []
            noise = study.noise[: PLACES[-1]]
            for place in (place for place in PLACES if place <= len(noise)):
                shown = [*noise[:place], *study.supports, *noise[place:]]
                for repeat in options.repeats:
                    lay = partial(layout.prompt, item.example.question, shown, repeat)
                    cells.append(Cell(f"p{place}/r{repeat}", repeat, place, lay, item.gold.answers))
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
            Panel("F1 by position of the supports", "documents before the supporting ones", "F1, %", f1),
            Panel(
                "Probability of the gold answer", "documents before the supporting ones", "probability, %", probability
            ),
        )
