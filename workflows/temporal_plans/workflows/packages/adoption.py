"""The plans of an instance that is taken over, as if it had run them itself."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from temporalio import workflow

from temporal_plans.domain.owners.runs import RunRecord
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.packages import AdoptedRun

_WHAT = "before the import"


class FormerPlans(NamedTuple):
    """Records of plans by name, and of their newest runs, which have the number 1."""

    records: dict[str, PlanRecord]
    runs: list[RunRecord]


def former_plans(
    runs: Sequence[AdoptedRun],
    configuration: PackageConfiguration,
    workflow_id: Callable[[str], str],
) -> FormerPlans:
    """Return the plans that ran before. A run without a time gets that of the configuration."""
    times = {run.plan: run.at or configuration.at or workflow.now() for run in runs}
    ordered = sorted(runs, key=lambda run: times[run.plan])
    records = {
        run.plan: PlanRecord(
            name=run.plan,
            workflow_id=workflow_id(run.plan),
            priority=0,
            status=run.status,
            run=1,
            changed=times[run.plan],
        )
        for run in ordered
    }
    history = [
        RunRecord(
            plan=run.plan,
            run=1,
            started=times[run.plan],
            ended=times[run.plan],
            status=run.status,
            config=configuration.number,
            what=_WHAT,
        )
        for run in ordered
    ]
    return FormerPlans(records, history)
