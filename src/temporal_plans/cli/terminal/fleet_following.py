"""The display of a fleet while something is awaited: a live table on a terminal, a line for each
change in a pipe."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from temporal_plans.cli.terminal.fleet_changes import Fleet, fleet_changes
from temporal_plans.cli.terminal.fleet_status_lines import status_lines
from temporal_plans.cli.terminal.output import console, print_line, printable
from temporal_plans.cli.terminal.width import wrapped


async def follow_fleet(looks: AsyncIterator[Fleet], known: Fleet) -> Fleet:
    """Show a fleet as it is seen until there is nothing more to see; return what was seen last.
    ``known`` is what was shown before."""
    show = _live if console().is_terminal else _lines
    return await show(looks, known)


class _Screen:
    """The content of the live display, rendered several times a second so that times advance."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet

    def __rich__(self) -> RenderableType:
        if not self.fleet:
            return Text("…")
        lines = status_lines(self.fleet, datetime.now(UTC))
        texts = (one if isinstance(one, Text) else Text(printable(one)) for one in lines)
        return Group(*(part for one in texts for part in wrapped(one, indent=4)))


async def _live(looks: AsyncIterator[Fleet], known: Fleet) -> Fleet:
    screen = _Screen(known)
    with Live(screen, console=console(), refresh_per_second=4) as live:
        async for seen in looks:
            screen.fleet = seen
            live.refresh()
    return screen.fleet


async def _lines(looks: AsyncIterator[Fleet], known: Fleet) -> Fleet:
    async for seen in looks:
        clock = datetime.now().strftime("%H:%M:%S")  # in the reader's time zone
        for line in fleet_changes(known, seen):
            print_line(f"{clock} {line}")
        known = seen
    return known
