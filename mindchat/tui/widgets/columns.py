"""The copies of a context beside one another.

Owns: where a copy begins and ends in what was sent, whether copies fit side by side, drawing them as columns. Does not
own: the pieces and their styles (evidence). A copy is everything from its first words to the next copy's, so the
columns, read one after the other, are what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from mindchat.tui.drawable import FAINT, TITLE, line, lines

NARROWEST = 30
"""Fewest cells of a column that can still be read."""
_BETWEEN = " │ "

Piece = tuple[str, str, int, str]
"""(text, origin, copy, passage), as evidence.stretches() cuts them."""


def cells_needed(copies: int) -> int:
    """The width from which this many copies stand side by side."""
    return copies * NARROWEST + (copies - 1) * len(_BETWEEN)


def parted(pieces: Sequence[Piece]) -> tuple[list[Piece], list[list[Piece]], list[Piece]]:
    """What comes before the copies, each copy, and what follows them. One copy or none: everything is before."""
    told = [number for number, (_, origin, copy, _) in enumerate(pieces) if copy > 0 and origin != "template"]
    first = next((number for number, piece in enumerate(pieces) if piece[1] in ("passage", "memory")), None)
    if first is None or not told:
        return list(pieces), [], []
    while first and pieces[first - 1][1] in ("question", "memory", "instruction"):
        first -= 1
    begins = [first]
    for number in told:
        if pieces[number][2] == len(begins):
            begins.append(number)
    ends = [*begins[1:], told[-1] + 1]
    return (
        list(pieces[:first]),
        [list(pieces[a:b]) for a, b in zip(begins, ends, strict=True)],
        list(pieces[ends[-1] :]),
    )


def side_by_side(copies: Sequence[Content], width: int) -> Content:
    """The copies as columns under their headings, `width` cells in all."""
    room = (width - len(_BETWEEN) * (len(copies) - 1)) // len(copies)
    columns = [content.wrap(room) for content in copies]
    heads = [line((f"Copy {number} of {len(copies)}", TITLE)) for number in range(1, len(copies) + 1)]
    rows = [heads, [line(("━" * room, FAINT)) for _ in copies]]
    rows += [
        [column[at] if at < len(column) else line("") for column in columns] for at in range(max(map(len, columns)))
    ]
    return lines(line((_BETWEEN, FAINT)).join([cell.truncate(room, pad=True) for cell in row]).rstrip() for row in rows)
