"""Probe `order`: every order of a question's documents; how far apart are the best and the worst, and does repeating
bring them together?

Owns: the orders, their ranking. Source: CoRe §3.1 (Figure 2) and §4.3 (Figures 5, 8 to 10): supporting documents and
random noise make 5 documents, all 120 orders are ranked by the probability of the gold answer without repetition, and
followed through the repetitions. The ranking knows the answer: best and worst are an oracle's choice, and part of their
coming together is regression to the mean.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial

from mindchat.lab.probes.asking import curves, point, read
from mindchat.lab.probes.cases import Case, Cell, Options, Panel, Record, Series
from mindchat.lab.probes.questions import Layout, Study, studies
from mindchat.ports import Cancel, Model
from mindchat.prompts.core.orders import descents
from mindchat.values import Prompt

MOST_DOCUMENTS = 5


class Orders:
    """See the module."""

    name = "order"
    about = (
        "All orders of a question's documents: gold probability and F1 of the best, the mean and the worst order over"
        " repetitions (CoRe §3.1, §4.3)."
    )
    defaults = Options(n=5, repeats=(0, 1, 2), documents=MOST_DOCUMENTS)
    uses: tuple[str, ...] = ("documents",)
    by_group = True

    def cases(self, options: Options) -> Iterator[Case]:
        """Questions with at most `documents` supports and enough noise to fill up."""
        layout, most = Layout(options.role), min(options.documents, MOST_DOCUMENTS)

        def fits(study: Study) -> bool:
            return len(study.supports) <= most <= len(study.supports) + len(study.noise)

        for study in studies(options, fits):
            item = study.item
            sources = (*study.supports, *study.noise[: most - len(study.supports)])
            needed = [step[2] for step in item.gold.steps]
            cells = []
            for order in itertools.permutations(range(most)):
                shown = [sources[i] for i in order]
                places = {source.pid: place for place, source in enumerate(shown)}
                known = len(needed) > 1 and all(pid in places for pid in needed)
                facts = {"descents": float(descents([places[pid] for pid in needed]))} if known else {}
                name = "".join(map(str, order))
                for repeat in options.repeats:
                    lay = partial(layout.prompt, item.example.question, shown, repeat)
                    cells.append(Cell(f"{name}/r{repeat}", repeat, repeat, lay, item.gold.answers, facts))
            yield Case(item.example.id, study.group, tuple(cells), item.example.dataset)

    def measure(
        self, case: Case, cell: Cell, prompt: Prompt, model: Model, cancel: Cancel
    ) -> tuple[str, dict[str, float]]:
        """Probability of the gold answer, then the answer itself over the same prefill."""
        return read(case, cell, prompt, model, cancel)

    def panels(self, records: Sequence[Record]) -> tuple[Panel, ...]:
        """Best, mean and worst over repetitions; and, where the needed order is known, by the descents of the order."""
        ranked = _ranked(records)
        by_descents = [record for record in records if "descents" in record.values]
        panels = [
            Panel(
                "Probability of the gold answer",
                "repetitions of the context",
                "probability, %",
                _curves(ranked, "probability"),
            ),
            Panel("F1 of the same orders", "repetitions of the context", "F1, %", _curves(ranked, "f1")),
        ]
        if by_descents:
            series = curves(
                by_descents, "f1", lambda record: f"{record.values['descents']:g} descents", lambda record: record.at
            )
            series = tuple(sorted(series, key=lambda each: each.name))
            panels.append(Panel("F1 by descents of the needed order", "repetitions of the context", "F1, %", series))
        return tuple(panels)


def _ranked(records: Sequence[Record]) -> dict[str, list[tuple[str, dict[int, Record]]]]:
    """For each case its orders from best to worst by the gold probability of their first reading; only orders measured
    at every repetition.
    """
    cases: dict[str, dict[str, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
    repeats = {record.repeat for record in records}
    for record in records:
        if not record.failure:
            cases[record.case][record.cell.partition("/")[0]][record.repeat] = record
    ranked = {}
    for case, orders in cases.items():
        whole = [(order, found) for order, found in orders.items() if found.keys() == repeats]
        ranked[case] = sorted(whole, key=lambda each: (-each[1][min(repeats)].values["logprob"], each[0]))
    return {case: orders for case, orders in ranked.items() if orders}


def _curves(ranked: dict[str, list[tuple[str, dict[int, Record]]]], value: str) -> tuple[Series, ...]:
    """Three curves over cases; a case counts once, whatever number of orders it has."""
    rows: dict[str, dict[int, list[float]]] = {
        name: defaultdict(list) for name in ("best order", "mean over orders", "worst order")
    }
    for orders in ranked.values():
        for repeat in orders[0][1]:
            values = [found[repeat].values[value] for _, found in orders]
            for name, one in zip(rows, (values[0], sum(values) / len(values), values[-1]), strict=True):
                rows[name][repeat].append(one)
    return tuple(
        Series(name, tuple(point(repeat, inside[repeat]) for repeat in sorted(inside))) for name, inside in rows.items()
    )
