"""Tables of plain columns, the same in a terminal and in a pipe."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from temporal_plans.cli.terminal.output import printable
from temporal_plans.cli.terminal.width import line_width, wrapped

Cell = str | Text

_GAP = "  "
_INDENT = 4
"""Columns by which the cells that have no column are indented."""

_HANGING_WIDTH_MINIMUM = 30
"""Of a last column that is wrapped."""


def columns(
    head: Sequence[str], rows: Sequence[Sequence[Cell]], *, hanging: bool = False
) -> list[Text]:
    """Return the head and a line for each row, columns two spaces apart, nothing cut.

    A column that is empty in all rows is left out. Where the table is wider than the output, the
    last columns become lines of their own below their row: ``reason: disk is full``. ``hanging``:
    the last column is wrapped in its place instead, as long as that has some width.
    """
    kept = [i for i in range(len(head)) if any(_text(row[i]).plain for row in rows)]
    table = [[Text(head[i], style="bold") for i in kept]]
    table += [[_text(row[i]) for i in kept] for row in rows]
    widths = [max(cell_len(line[i].plain) for line in table) for i in range(len(kept))]
    fitting = _fitting(widths, line_width())
    if hanging and fitting == len(widths) - 1:
        start = sum(widths[:-1]) + len(_GAP) * fitting
        if start + _HANGING_WIDTH_MINIMUM <= (line_width() or 0):
            return [part for row in table for part in wrapped(_line(row, widths), indent=start)]
    lines = [_line(table[0], widths[:fitting])]
    for row in table[1:]:
        lines.append(_line(row, widths[:fitting]))
        names = (head[i].lower() for i in kept[fitting:])
        lines += _details(zip(names, row[fitting:], strict=True))
    return lines


def _fitting(widths: Sequence[int], width: int | None) -> int:
    """Return how many of the first columns fit; one at least."""
    if width is None:
        return len(widths)
    used = -len(_GAP)
    for number, column in enumerate(widths):
        used += column + len(_GAP)
        if used > width:
            return max(number, 1)
    return len(widths)


def _details(cells: Iterator[tuple[str, Text]]) -> list[Text]:
    """Return the named cells that are not empty, a line each, wrapped."""
    lines: list[Text] = []
    for name, cell in cells:
        if cell.plain:
            line = Text(" " * _INDENT).append(f"{name}: ", style="dim").append_text(cell)
            lines += wrapped(line, indent=2 * _INDENT)
    return lines


def _text(cell: Cell) -> Text:
    return (
        cell
        if isinstance(cell, Text)
        else Text(printable(cell).replace("\n", " ").replace("\t", " "))
    )


def _line(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text()
    for cell, width in zip(cells, widths, strict=False):
        line.append_text(cell)
        line.append(" " * (width - cell_len(cell.plain) + len(_GAP)))
    line.rstrip()
    return line
