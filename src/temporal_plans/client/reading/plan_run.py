"""A plan's tree, with the end of its workflow."""

from dataclasses import dataclass
from datetime import datetime

from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView, StepView


@dataclass(frozen=True)
class PlanRun:
    """A plan's tree (``view``), and how its workflow ended.

    ``ended`` is None while the workflow is open; ``why`` is the text of its failure;
    ``superseded``: it ended because its service starts another run of the plan. A terminated
    workflow leaves its tree as it was, so read both.
    """

    view: PlanView
    ended: Ended | None = None
    why: str = ""
    superseded: bool = False

    @property
    def complete(self) -> bool:
        """Whether the plan is COMPLETE."""
        return self.view.status is Status.COMPLETE

    @property
    def at_rest(self) -> bool:
        """Whether nothing more happens without an operator: the workflow has ended, or the plan is
        COMPLETE or in ERROR. False for a superseded run, which a new run follows."""
        if self.superseded:
            return False
        return self.ended is not None or self.complete or self.view.status is Status.ERROR

    @property
    def failing(self) -> tuple[tuple[str, StepView], ...]:
        """The steps that failed, by path (``phase/step``): in ERROR, or retried since."""
        return tuple(
            (f"{phase.name}/{step.name}", step)
            for phase in self.view.phases
            for step in phase.steps
            if _has_failed(step)
        )

    @property
    def cut_short(self) -> str:
        """How the workflow ended before the plan was COMPLETE; else empty."""
        if self.ended is None or self.complete:
            return ""
        if self.superseded:
            return "superseded"
        return "stopped" if self.ended is Ended.COMPLETED else self.ended.value

    @property
    def ending(self) -> str:
        """The same as a part of a sentence: "was stopped", "has failed"."""
        if self.ended is None or self.ended is Ended.COMPLETED or self.superseded:
            return f"was {self.cut_short}" if self.cut_short else ""
        return "" if self.complete else self.ended.clause


def _has_failed(step: StepView) -> bool:
    if step.status is Status.COMPLETE:
        return False
    return step.status in (Status.ERROR, Status.DELAYED) or step.attempt > 1


@dataclass(frozen=True)
class WatchProblem:
    """Server or worker do not answer ``PlansClient.watch``, which continues to try.

    ``text`` is the problem, ``since`` the time of the first attempt without an answer.
    """

    text: str
    since: datetime
