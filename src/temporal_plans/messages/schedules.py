"""Messages with which a Temporal Schedule runs a plan of a service."""

from pydantic import Field

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.model import CompactValue


class ScheduledPlan(CompactValue):
    """Input of the workflow ``ScheduledRun``: the plan to run, and its parameters. ``schedule`` is
    the id of the schedule, for the plan's log."""

    service: str
    plan: str
    parameters: dict[str, str] = Field(default={}, max_length=100)
    schedule: str = ""


class ScheduledStart(CompactValue):
    """Result of the activity ``start_scheduled_plan``.

    ``run_id`` is the workflow run to wait for, ``first_run_id`` the first run of its chain. Not
    ``started``: the plan was already at work, and ``message`` has its state.
    """

    plan_id: str
    started: bool
    run_id: str = ""
    first_run_id: str = ""
    mark: str = Field(default="", description="the reason of this start in the plan's log")
    message: str = ""


class ScheduledResult(CompactValue):
    """Result of ``ScheduledRun``. ``started`` is false when the plan was already at work."""

    plan_id: str
    started: bool
    status: Status | None = None
    message: str = ""
