"""The plans of an instance that is taken over, as if it had run them itself."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    ordered = sorted(runs, key=lambda run: run.at or configuration.at)
    records = {
        run.plan: PlanRecord(
            name=run.plan,
            workflow_id=workflow_id(run.plan),
            priority=0,
            status=run.status,
            run=1,
            changed=run.at or configuration.at,
        )
        for run in ordered
    }
    history = [
        RunRecord(
            plan=run.plan,
            run=1,
            started=run.at or configuration.at,
            ended=run.at or configuration.at,
            status=run.status,
            config=configuration.number,
            what=_WHAT,
        )
        for run in ordered
    ]
    return FormerPlans(records, history)
