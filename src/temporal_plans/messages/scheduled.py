"""What crosses when a Temporal Schedule runs a plan of a service."""

from pydantic import Field

from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.status import Status


class ScheduledPlan(CompactValue):
    """Input of the workflow ``ScheduledRun``: which plan of which service, and its parameters.
    ``schedule`` is the id of the schedule, for the plan's log."""

    service: str
    plan: str
    parameters: dict[str, str] = Field(default={}, max_length=100)
    schedule: str = ""


class ScheduledStart(CompactValue):
    """What became of the plan's start. ``run_id`` is the workflow run to wait for, ``first_run_id``
    the one that its chain of runs began with; not ``started``: the plan was at work already, and
    ``message`` says how."""

    plan_id: str
    started: bool
    run_id: str = ""
    first_run_id: str = ""
    mark: str = Field(default="", description="the reason in the plan's log that tells our start")
    message: str = ""


class ScheduledResult(CompactValue):
    """Result of ``ScheduledRun``. ``started`` is false when the plan was at work already."""

    plan_id: str
    started: bool
    status: Status | None = None
    message: str = ""
