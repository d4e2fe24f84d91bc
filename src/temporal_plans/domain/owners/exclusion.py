"""Which plans of an owner stand in the way of another: for owners whose plans exclude each other.

A plan that is idle may be superseded by the next one: it is asked to leave its work, and is
cancelled when it has not ended after ``EngineSettings.leave_timeout``.
"""

from collections.abc import Iterable
from typing import NamedTuple

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


class PlanSituation(NamedTuple):
    """The last report of a plan to its owner, whose fields it has; ``open``: its workflow runs."""

    plan: str
    status: Status
    open: bool = True
    resting: bool = False
    stopped: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether another plan may take its place: it is closed, rests in ERROR, or was stopped. A
        plan that waits at a canary gate or for an approval runs, and so does an interrupted one."""
        return not self.open or (self.resting and (self.status is Status.ERROR or self.stopped))


class Clearance(NamedTuple):
    """What a plan needs before it starts: ``refusal`` says why it may not, and otherwise the plans
    ``superseded`` are to be superseded first."""

    refusal: Refusal | None = None
    superseded: tuple[str, ...] = ()


def clearance(plan: str, others: Iterable[PlanSituation], *, overrides: bool = False) -> Clearance:
    """Return whether a plan may start beside the owner's other plans, which exclude it, and which
    of them it supersedes; an earlier run of itself is one of them. ``overrides``: it supersedes
    plans at work as well, as a removal does."""
    running = [other for other in others if other.open]
    busy = [other for other in running if not other.is_idle]
    if busy and not overrides:
        reasons = (
            Reason(
                problem=f"plan {other.plan} is {other.status}, and plan {plan} can't run beside it",
                fix=f"wait for its end, or stop plan {other.plan}",
            )
            for other in sorted(busy)
        )
        return Clearance(Refusal(code=Code.IN_USE, reasons=tuple(reasons)))
    return Clearance(superseded=tuple(sorted(other.plan for other in running)))
