"""Times and limits of the engine, as the worker's plugin hands them to its workflows."""

from dataclasses import dataclass
from datetime import timedelta

from temporal_plans.domain.plans import standing
from temporal_plans.workflows.mechanics.externs import extern

EXTERN = "temporal_plans_settings"
"""The name under which the worker hands them over."""


@dataclass(frozen=True)
class EngineSettings:
    """The same for all workers of a task queue: a replay with others may take another path."""

    answer_timeout: timedelta = timedelta(seconds=30)
    """How long an update waits for a plan to start before it answers that the start is under
    way."""

    leave_timeout: timedelta = timedelta(seconds=20)
    """How long a phase that is ended early may take to leave its steps; then it is cancelled."""

    launch_report_delay: timedelta = timedelta(seconds=1)
    """How long a step that has just launched its tasks waits before it reports that alone."""

    check_interval: timedelta = timedelta(seconds=60)
    """The time between checks that open plans still run: a terminated plan sends no report."""

    idle_check_interval: timedelta = timedelta(minutes=10)
    """The same when all open plans are COMPLETE or WAITING."""

    ending_check_interval: timedelta = timedelta(seconds=5)
    """The same while the owner waits for a plan that it has superseded."""

    look_interval: timedelta = timedelta(minutes=5)
    """The time between looks at the objects of an installed package while none of its plans
    runs."""

    spoke_timeout: timedelta = timedelta(seconds=15)
    """After how long without a sign of life the spoke of an environment counts as away."""

    progress_interval: timedelta = timedelta(seconds=15)
    """The time between reports of a spoke about plans that run."""

    retention_limit: int = standing.RETENTION_LIMIT
    """Completed phases that a standing plan keeps at most."""

    retention_time: timedelta = standing.RETENTION_TIME
    """How long a standing plan keeps a completed phase."""


def engine_settings() -> EngineSettings:
    """The settings of the worker that runs this workflow; the defaults without the plugin."""
    return extern(EXTERN, EngineSettings) or EngineSettings()
