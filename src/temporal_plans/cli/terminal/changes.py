"""Changes between two states of a plan, a line each."""

from collections.abc import Iterator
from dataclasses import dataclass

from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView


@dataclass(frozen=True)
class _Line:
    path: str
    status: Status
    message: str = ""

    def __str__(self) -> str:
        shown = " ".join(self.message.split()) if self.status is not Status.COMPLETE else ""
        return f"{self.path} {self.status}" + (f": {shown}" if shown else "")


def changes(before: PlanRun | None, after: PlanRun) -> list[str]:
    """Return a line for each element whose status or reason changed, children before parents;
    without ``before``, for each that has begun. Then new waits for a person, and new errors."""
    old = dict(_lines(before.view)) if before else {}
    lines = [
        str(line)
        for path, line in _lines(after.view)
        if (line != old[path] if path in old else _shown_at_first(line, after.view))
    ]
    waiting = before.view.waiting if before else ()
    errors = before.view.errors if before else ()
    lines += [f"waiting: {text}" for text in after.view.waiting if text not in waiting]
    if after.view.halted and not (before and before.view.halted):
        lines.append(f"halted: {after.view.halted}")
    lines += [f"error: {text}" for text in after.view.errors if text not in errors]
    if after.cut_short:
        lines.append(f"{after.view.name} {after.ending}" + (after.why and f": {after.why}"))
    return lines


def _shown_at_first(line: _Line, view: PlanView) -> bool:
    return line.status is not Status.PENDING or line.path == view.name


def _lines(view: PlanView) -> Iterator[tuple[str, _Line]]:
    for phase in view.phases:
        path = f"{view.name}/{phase.name}"
        for step in phase.steps:
            where = f"{path}/{step.name}"
            yield where, _Line(where, step.status, step.message)
        yield path, _Line(path, phase.status)
    yield view.name, _Line(view.name, view.status)
