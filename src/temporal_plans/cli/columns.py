"""Tables of plain columns, the same in a terminal and in a pipe."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from temporal_plans.cli.output import printable

Cell = str | Text


def columns(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[Text]:
    """One line a row under a head, columns two spaces apart, nothing cut.

    A column that is empty in all rows is left out.
    """
    kept = [i for i in range(len(head)) if any(_text(row[i]).plain for row in rows)]
    table = [[Text(head[i], style="bold") for i in kept]]
    table += [[_text(row[i]) for i in kept] for row in rows]
    widths = [max(cell_len(line[i].plain) for line in table) for i in range(len(kept))]
    return [_line(line, widths) for line in table]


def _text(cell: Cell) -> Text:
    return (
        cell
        if isinstance(cell, Text)
        else Text(printable(cell).replace("\n", " ").replace("\t", " "))
    )


def _line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell)
        line.append(" " * (width - cell_len(cell.plain) + 2))
    line.rstrip()
    return line
