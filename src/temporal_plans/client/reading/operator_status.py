"""The newest runs of an installed package's plans, as its status document has them."""

from collections.abc import Iterator, Mapping

from temporal_plans.client.errors import PlansError
from temporal_plans.client.reading.operator_dialect import NewestRun
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.packages import InstanceStatus
from temporal_plans.messages.plan_views import PlanView


def newest_runs(
    status: InstanceStatus, shown: Mapping[str, PlanRun | PlansError]
) -> Iterator[NewestRun]:
    """Yield the newest run of each plan that ever ran. ``shown`` are their trees by workflow id;
    of one that can't be read, as before the instance was taken over, only the record is known."""
    for record in status.plans:
        if not record.run:
            continue
        run = shown.get(record.workflow_id)
        found = run if isinstance(run, PlanRun) else PlanRun(_without_phases(record))
        ended = found.cut_short or ("superseded" if record.superseded else "")
        yield NewestRun(found.view, status.uids.get(record.name, ""), record.changed, ended)


def _without_phases(record: PlanRecord) -> PlanView:
    return PlanView(id=record.workflow_id, name=record.name, strategy="", status=record.status)
