"""Plans in Python: the same values as in a plan file, checked in the same way.

from temporal_plans import build

BACKUP = build.plan(
    "backup",
    build.phase(
        "prepare",
        build.activity("freeze_database", task_queue="database"),
        build.activity(dump_database, {"keep": "${KEEP}"}, timeout=build.hours(2)),
    ),
    build.phase("sign-off", build.approval("Is the dump complete?")),
    parameters=[build.parameter("KEEP", default=30)],
)

Import the package, not its names: ``activity`` and ``workflow`` are modules of Temporal's SDK, too.
Only ``plan`` checks, and reports all faults in one ``SpecError``.
"""

from temporal_plans.build.durations import Length, hours, minutes, seconds
from temporal_plans.build.phases import Phase, phase
from temporal_plans.build.plans import Parameter, parameter, plan
from temporal_plans.build.steps import (
    Retry,
    Step,
    activity,
    approval,
    command,
    custom,
    retry,
    sleep,
    work,
    workflow,
)
from temporal_plans.build.strategies import (
    Strategy,
    canary,
    dependency,
    max_parallel,
    parallel,
    random,
    serial,
    strategy,
    waves,
)

__all__ = [
    "Length",
    "Parameter",
    "Phase",
    "Retry",
    "Step",
    "Strategy",
    "activity",
    "approval",
    "canary",
    "command",
    "custom",
    "dependency",
    "hours",
    "max_parallel",
    "minutes",
    "parallel",
    "parameter",
    "phase",
    "plan",
    "random",
    "retry",
    "seconds",
    "serial",
    "sleep",
    "strategy",
    "waves",
    "work",
    "workflow",
]
