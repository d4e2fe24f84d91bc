"""The width of output: that of the terminal, or COLUMNS; a pipe without COLUMNS has no limit."""

import os

from rich.text import Text

from temporal_plans.cli.terminal.output import console

_WIDTH_MINIMUM = 20


def line_width() -> int | None:
    """Return the number of columns that a line may have; None without a limit."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(int(given), _WIDTH_MINIMUM)
    return max(console().width, _WIDTH_MINIMUM) if console().is_terminal else None


def wrapped(line: Text, *, indent: int = 0, width: int | None = None) -> list[Text]:
    """Return the line in as many lines as the width demands, all after the first with an indent.
    ``width`` is that of the output without an argument."""
    width = width or line_width()
    if width is None or line.cell_len <= width:
        return [line]
    first, *_ = line.wrap(console(), width, tab_size=4)
    rest = line[len(first) :]
    rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
    lines = list(rest.wrap(console(), width - indent, tab_size=4)) if rest else []
    for one in (first, *lines):
        one.rstrip()
    return [first, *(Text(" " * indent).append_text(one) for one in lines)]
