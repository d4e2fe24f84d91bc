"""The display of a running plan: a live tree on a terminal, a line per change in a pipe."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from temporal_plans.cli.terminal.changes import changes
from temporal_plans.cli.terminal.duration import about
from temporal_plans.cli.terminal.output import console, print_line, printable
from temporal_plans.cli.terminal.tree import fitting, notes, stuck_notes, tree
from temporal_plans.client.reading.expectation import Expectation
from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
from temporal_plans.domain.plans.stuck import StuckWorkflow


async def follow(
    runs: AsyncIterator[PlanRun | WatchProblem], expectation: Expectation | None = None
) -> PlanRun:
    """Show a plan until it is at rest; return its last state."""
    show = _live if console().is_terminal else _lines
    return await show(runs, expectation)


def time_left(run: PlanRun, expectation: Expectation | None, now: datetime) -> timedelta | None:
    """Return the expected time until the plan is COMPLETE; None if unknown or too short, and while
    the plan waits for an operator or a step of it fails: no earlier run tells how long that takes.
    """
    if expectation is None or run.ended is not None or run.at_rest:
        return None
    if run.view.waiting or run.failing:
        return None
    left = expectation.left(run.view, now)
    return left if left is not None and left >= _TIME_LEFT_MINIMUM else None


_TIME_LEFT_MINIMUM = timedelta(seconds=1)


class _Screen:
    """The content of the live display, rendered several times a second so that times advance."""

    def __init__(self, expectation: Expectation | None) -> None:
        self._expectation = expectation
        self.run: PlanRun | None = None
        self.trouble: WatchProblem | None = None

    def __rich__(self) -> RenderableType:
        if self.run is None:
            return Text("…")
        below = notes(self.run)
        if self.trouble:
            below += [Text(), Text(f"No update: {printable(self.trouble.text)}", style="yellow")]
        height = console().height - len(below) - 1
        now = datetime.now(UTC)
        left = time_left(self.run, self._expectation, now)
        return Group(*fitting(self.run.view, now=now, height=height, left=left), *below)


async def _live(
    runs: AsyncIterator[PlanRun | WatchProblem], expectation: Expectation | None
) -> PlanRun:
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
    runs: AsyncIterator[PlanRun | WatchProblem], expectation: Expectation | None
) -> PlanRun:
    last: PlanRun | None = None
    in_trouble = False
    async for seen in runs:
        clock = datetime.now().strftime("%H:%M:%S")  # in the reader's time zone
        if isinstance(seen, WatchProblem):
            if not in_trouble:
                print_line(f"{clock} no update: {seen.text}")
            in_trouble = True
            continue
        if in_trouble:
            print_line(f"{clock} updates arrive again")
        left = time_left(seen, expectation, datetime.now(UTC)) if last is None else None
        for line in changes(last, seen):
            print_line(f"{clock} {line}")
        if left is not None:
            print_line(f"{clock} {about(left)} left, by the durations of earlier runs")
        last, in_trouble = seen, False
    return _last(last)


def _last(run: PlanRun | None) -> PlanRun:
    if run is None:
        raise RuntimeError("the plan was followed, and no state of it arrived")
    return run


def print_run(
    run: PlanRun,
    expectation: Expectation | None = None,
    stuck: Sequence[StuckWorkflow] = (),
) -> None:
    """Print the whole tree and the notes under it; ``stuck`` are workflows of the plan whose
    workflow task fails."""
    now = datetime.now(UTC)
    left = None if stuck else time_left(run, expectation, now)
    for line in [*tree(run.view, now=now, left=left), *notes(run), *stuck_notes(stuck)]:
        print_line(line)
