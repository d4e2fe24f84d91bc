"""A plan as a tree (behaviour 11.1), with times and reasons.

deploy (serial strategy) (IN_PROGRESS)  12s
├─ hello (serial strategy) (COMPLETE)  4.0s
│  └─ hello-0:[server] (COMPLETE)  4.0s
└─ world (serial-canary strategy) (WAITING)
   └─ world-0:[server] (WAITING)
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from rich.text import Text

from temporal_plans.cli.terminal.duration import about, duration
from temporal_plans.cli.terminal.output import coloured, one_line, printable
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.plans.hint import Hint, plan_hint
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView

_SETTLED = (Status.COMPLETE, Status.PENDING)

Steps = Callable[[PhaseView], Sequence[StepView]]


def tree(
    view: PlanView,
    *,
    now: datetime | None = None,
    steps: Steps | None = None,
    left: timedelta | None = None,
) -> list[Text]:
    """Return the lines of the tree. Without ``now`` there are no times and reasons, only the text
    of behaviour 11.1. ``steps`` chooses the steps to show; the others are counted. ``left`` is the
    expected time until the plan is COMPLETE."""
    lines = [_head(view.name, view.strategy, view.status)]
    if view.finished or view.status is not Status.COMPLETE:  # a COMPLETE standing plan is idle
        _add_times(lines[0], view.started, view.finished, now)
    if left is not None:
        lines[0].append(f"  {about(left)} left", style="dim")
    for index, phase in enumerate(view.phases):
        last = index == len(view.phases) - 1
        line = Text.assemble(("└─ " if last else "├─ ", "dim"))
        line.append_text(_head(phase.name, phase.strategy, phase.status))
        _add_times(line, phase.started, phase.finished, now)
        lines.append(line)
        lines += _steps(phase, "   " if last else "│  ", now, steps)
    return lines


def fitting(
    view: PlanView, *, now: datetime, height: int, left: timedelta | None = None
) -> list[Text]:
    """Return the tree in about ``height`` lines: first steps, then phases that are COMPLETE or
    PENDING are left out and counted."""
    lines = tree(view, now=now, left=left)
    if len(lines) <= height:
        return lines
    room = max(height - 1 - 2 * len(view.phases), 0)
    moving = {
        step.id
        for step in [
            step for phase in view.phases for step in phase.steps if step.status not in _SETTLED
        ][:room]
    }
    lines = tree(
        view, now=now, left=left, steps=lambda phase: [s for s in phase.steps if s.id in moving]
    )
    if len(lines) <= height:
        return lines
    phases = [phase for phase in view.phases if phase.status not in _SETTLED]
    phases = phases[: max((height - 2) // 2, 1)]
    counted = Counter(phase.status for phase in view.phases if phase not in phases)
    lines = tree(view.but(phases=tuple(phases)), now=now, left=left, steps=lambda phase: ())
    return [*lines, Text(f"   … {_counts(counted)}", style="dim")]


def notes(run: PlanRun) -> list[Text]:
    """Return the notes under the tree: errors (behaviour 11.1), waits, an early end."""
    lines: list[Text] = []
    if run.view.errors:
        lines += [Text(), Text("Errors:", style="bold red")]
        lines += [Text(f"- {one_line(error)}") for error in run.view.errors]
    if run.view.halted and not run.cut_short:
        lines += [Text(), Text("Halted:", style="red")]
        lines.append(Text(f"- nothing more begins: {one_line(run.view.halted)}"))
    if not run.view.reentrant and run.ended is None:
        lines += [Text(), Text("Not reentrant: restart and stop need --force.", style="dim")]
    idle = run.complete and run.ended is None  # a standing plan, which has nothing to do now
    if run.view.waiting and (idle or not run.at_rest):
        lines += [Text(), Text("Waiting:", style="yellow")]
        lines += [Text(f"- {one_line(text)}") for text in run.view.waiting]
    if run.view.waiting and idle:
        lines.append(Text(f"  {printable(str(_resumption(run.view)))}"))
    if run.superseded:
        lines += [Text(), Text("Superseded: its service starts a new run of it.", style="yellow")]
    elif run.cut_short:
        why = f": {printable(run.why)}" if run.why else ""
        lines += [
            Text(),
            Text(f"The plan {run.ending} before it was COMPLETE{why}.", style="red"),
        ]
    return lines


def _resumption(view: PlanView) -> Hint:
    purpose = "it begins nothing new until it is continued"
    return plan_hint(purpose, "continue", view.name, service=view.service)


def stuck_notes(stuck: Sequence[StuckWorkflow]) -> list[Text]:
    """Return the notes about workflows of the plan whose workflow task fails."""
    if not stuck:
        return []
    lines = [Text(printable(line)) for one in stuck for line in one.in_full.splitlines()]
    return [Text(), Text("Stands still:", style="bold red"), *lines]


def _head(name: str, strategy: str, status: str) -> Text:
    strategy = printable(strategy) or "<UNKNOWN>"
    line = Text(f"{printable(name)} ({strategy} strategy) (")
    line.append_text(coloured(status or "<UNKNOWN>"))
    return line.append(")")


def _steps(phase: PhaseView, indent: str, now: datetime | None, steps: Steps | None) -> list[Text]:
    shown = phase.steps if steps is None else steps(phase)
    hidden = Counter(step.status for step in phase.steps if step not in shown)
    lines: list[Text] = []
    for index, step in enumerate(shown):
        last = index == len(shown) - 1 and not hidden
        line = Text.assemble((f"{indent}{'└─' if last else '├─'} ", "dim"))
        line.append_text(_step(step, now))
        lines.append(line)
    if hidden:
        lines.append(Text(f"{indent}└─ … {_counts(hidden)}", style="dim"))
    return lines


def _step(step: StepView, now: datetime | None) -> Text:
    line = Text(f"{printable(step.name)} (")
    line.append_text(coloured(step.shown))
    line.append(")")
    if now is None:
        return line
    facts = [_took(step.started, step.finished, now)] if step.started else []
    if step.attempt > 1:
        facts.append(f"attempt {step.attempt}")
    if step.forced:
        facts.append("forced")
    if facts:
        line.append(f"  {', '.join(facts)}", style="dim")
    if step.message and step.status is not Status.COMPLETE:
        line.append(f"  {one_line(step.message)}", style="dim")
    return line


def _add_times(
    line: Text, started: datetime | None, finished: datetime | None, now: datetime | None
) -> None:
    if now is not None and started is not None:
        line.append(f"  {_took(started, finished, now)}", style="dim")


def _took(started: datetime, finished: datetime | None, now: datetime) -> str:
    return duration((finished or now) - started)


def _counts(statuses: Counter[Status]) -> str:
    return ", ".join(f"{count} {status}" for status, count in statuses.most_common())
