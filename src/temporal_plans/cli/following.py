"""Showing a plan while it runs: a live tree on a terminal, a line a change in a pipe."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from temporal_plans.cli.changes import changes
from temporal_plans.cli.duration import about
from temporal_plans.cli.output import console, printable, say
from temporal_plans.cli.tree import fitting, notes, tree
from temporal_plans.client.expectation import Expectation
from temporal_plans.client.plan_run import PlanRun, Trouble


async def follow(
    runs: AsyncIterator[PlanRun | Trouble], expectation: Expectation | None = None
) -> PlanRun:
    """Show a plan until it is at rest; the last that was seen of it."""
    show = _live if console().is_terminal else _lines
    return await show(runs, expectation)


def time_left(run: PlanRun, expectation: Expectation | None, now: datetime) -> timedelta | None:
    """The expected time until it is COMPLETE, while that is worth saying."""
    if expectation is None or run.ended is not None or run.at_rest:
        return None
    left = expectation.left(run.view, now)
    return left if left is not None and left >= _WORTH_SAYING else None


_WORTH_SAYING = timedelta(seconds=1)


class _Screen:
    """What the live display shows now; asked for several times a second, so that times run on."""

    def __init__(self, expectation: Expectation | None) -> None:
        self._expectation = expectation
        self.run: PlanRun | None = None
        self.trouble: Trouble | None = None

    def __rich__(self) -> RenderableType:
        if self.run is None:
            return Text("…")
        below = notes(self.run)
        if self.trouble:
            below += [Text(), Text(f"No news: {printable(self.trouble.text)}", style="yellow")]
        height = console().height - len(below) - 1
        now = datetime.now(UTC)
        left = time_left(self.run, self._expectation, now)
        return Group(*fitting(self.run.view, now=now, height=height, left=left), *below)


async def _live(runs: AsyncIterator[PlanRun | Trouble], expectation: Expectation | None) -> PlanRun:
    screen = _Screen(expectation)
    with Live(screen, console=console(), refresh_per_second=5) as live:
        async for seen in runs:
            if isinstance(seen, PlanRun):
                screen.run, screen.trouble = seen, None
            else:
                screen.trouble = seen
            live.refresh()
    return _last(screen.run)


async def _lines(
    runs: AsyncIterator[PlanRun | Trouble], expectation: Expectation | None
) -> PlanRun:
    last: PlanRun | None = None
    troubled = False
    async for seen in runs:
        clock = datetime.now().strftime("%H:%M:%S")  # the reader's own
        if isinstance(seen, Trouble):
            if not troubled:
                say(f"{clock} no news: {seen.text}")
            troubled = True
            continue
        if troubled:
            say(f"{clock} there is news again")
        left = time_left(seen, expectation, datetime.now(UTC)) if last is None else None
        for line in changes(last, seen):
            say(f"{clock} {line}")
        if left is not None:
            say(f"{clock} {about(left)} left, as it took before")
        last, troubled = seen, False
    return _last(last)


def _last(run: PlanRun | None) -> PlanRun:
    if run is None:
        raise RuntimeError("the plan was watched without being seen once")
    return run


def print_run(run: PlanRun, expectation: Expectation | None = None) -> None:
    """The whole tree with what stands under it."""
    now = datetime.now(UTC)
    left = time_left(run, expectation, now)
    for line in [*tree(run.view, now=now, left=left), *notes(run)]:
        say(line)
