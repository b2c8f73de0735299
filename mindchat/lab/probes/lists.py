"""Probe `lists`: find the first element of a list that is told in pairs of neighbours, after more and more repetitions.

Owns: drawing the lists, accuracy. Source: CoRe §4.1 and §4.3, Figures 4 and 6, Table 5: k lists (10, 6, 3, 1) of 3
distinct integers from 0 to 9999, the question is about the last element of list 0; repetitions 0 to 10. The task must
be read from right to left, and needs no knowledge.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import partial

from mindchat.lab.probes.asking import answer, curves
from mindchat.lab.probes.cases import Case, Cell, Options, Panel, Record
from mindchat.ports import Cancel, Model
from mindchat.prompts.core.synthetic import lists_prompt
from mindchat.values import Prompt

ELEMENTS, HIGHEST = 3, 9999


class Lists:
    """See the module."""

    name = "lists"
    about = (
        "Accuracy at naming the first of 3 integers of a list given the last; k lists, told in pairs of neighbours"
        " (CoRe §4.1, Figures 4 and 6)."
    )
    defaults = Options(n=20, repeats=tuple(range(11)))
    uses: tuple[str, ...] = ("lists",)
    by_group = False

    def cases(self, options: Options) -> Iterator[Case]:
        """n tasks for each number of lists; task i is the same whatever n is."""
        for k in options.lists:
            for i in range(options.n):
                rows = draw(k, options.seed, i)
                cells = tuple(
                    Cell(
                        f"r{repeat}",
                        repeat,
                        repeat,
                        partial(lists_prompt, rows, 0, repeat, options.role),
                        (str(rows[0][0]),),
                    )
                    for repeat in options.repeats
                )
                yield Case(f"{k}x{ELEMENTS}-{i:04d}", f"{k} list{'s' * (k > 1)}", cells)

    def measure(
        self, case: Case, cell: Cell, prompt: Prompt, model: Model, cancel: Cancel
    ) -> tuple[str, dict[str, float]]:
        """The answer and whether it is right."""
        del case
        said = answer(model, prompt, cancel)
        return said, {"accuracy": float(only_number(said) == int(cell.gold[0]))}

    def panels(self, records: Sequence[Record]) -> tuple[Panel, ...]:
        """Accuracy over repetitions, a curve for each number of lists."""
        series = curves(records, "accuracy", lambda record: record.group, lambda record: record.at)
        return (Panel("Accuracy in the synthetic task", "repetitions of the context", "accuracy, %", series),)


def draw(k: int, seed: int, index: int) -> tuple[tuple[int, ...], ...]:
    """k lists whose elements are all different."""
    numbers = random.Random(f"lists/{seed}/{k}/{index}").sample(range(HIGHEST + 1), k * ELEMENTS)
    return tuple(tuple(numbers[i * ELEMENTS : (i + 1) * ELEMENTS]) for i in range(k))


def only_number(said: str) -> int | None:
    """The number that an answer names; None if it names none or several."""
    found = set(re.findall(r"\d+", said))
    return int(found.pop()) if len(found) == 1 else None
