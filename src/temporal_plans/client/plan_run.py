"""A plan's tree together with what became of its workflow."""

from dataclasses import dataclass
from datetime import datetime

from temporal_plans.client.gateway import Ended
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import PlanView


@dataclass(frozen=True)
class PlanRun:
    """``ended`` is None while the workflow is open. ``why`` is the failure's text, if it failed.
    ``superseded``: it ended because its service begins another run of the plan.

    A workflow that was terminated leaves its tree as it stood, so the two must be read together.
    """

    view: PlanView
    ended: Ended | None = None
    why: str = ""
    superseded: bool = False

    @property
    def complete(self) -> bool:
        return self.view.status is Status.COMPLETE

    @property
    def at_rest(self) -> bool:
        """Nothing more happens without somebody: the workflow ended, or the plan is in ERROR."""
        if self.superseded:
            return False
        return self.ended is not None or self.complete or self.view.status is Status.ERROR

    @property
    def cut_short(self) -> str:
        """How the workflow ended if it did not end by completing the plan, else empty."""
        if self.ended is None or self.complete:
            return ""
        if self.superseded:
            return "superseded"
        return "stopped" if self.ended is Ended.COMPLETED else self.ended.value


@dataclass(frozen=True)
class Trouble:
    """Watching goes on, but nothing is heard at the moment."""

    text: str
    since: datetime
