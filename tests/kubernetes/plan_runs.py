"""Which runs of plans there were, and what they did to objects of a cluster."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from kubernetes.cluster_client import Object
from kubernetes.place import Place
from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.packages.enhancement import RUN_KEY
from temporal_plans.messages.packages import PackageRun
from temporal_plans.messages.plans import PlanInput

_GRAIN = timedelta(seconds=1)
"""Times in objects are whole seconds."""


class PlanRun(NamedTuple):
    """A run of a plan from its beginning to its end, None while it is open."""

    plan: str
    uid: str
    began: datetime
    ended: datetime | None


async def runs_of(place: Place, service: str, plans: Iterable[str]) -> list[PlanRun]:
    """Return all runs of plans of an installed package, in the order in which they began."""
    client = await place.temporal()
    gateway = TemporalGateway(client)
    found: dict[str, PlanRun] = {}
    for plan in plans:
        plan_id = f"{service}/{plan}"
        async for one in client.list_workflows(f"WorkflowId = '{plan_id}'"):
            given = await gateway.input_of(plan_id, PlanInput, one.run_id)
            assert given.engine is not None
            assert given.engine.context is not None
            uid = PackageRun.model_validate(given.engine.context.part).uid
            began, ended = one.start_time, one.close_time
            if (other := found.get(uid)) is not None:  # it was continued as new
                began = min(began, other.began)
                ended = None if None in (ended, other.ended) else max(ended, other.ended)  # type: ignore[type-var]
            found[uid] = PlanRun(plan, uid, began, ended)
    return sorted(found.values(), key=lambda run: run.began)


def assert_one_at_a_time(runs: Iterable[PlanRun]) -> None:
    """No run began before the one before it was over."""
    for first, second in pairwise(runs):
        assert first.ended is not None, f"{first} is still open"
        assert first.ended <= second.began, f"{first} and {second} ran at once"


def assert_applied_by(runs: Iterable[PlanRun], objects: Iterable[Object]) -> None:
    """Every object was applied by a run while that was open."""
    by_uid = {run.uid: run for run in runs}
    for one in objects:
        who = f"{one['kind']} {one['metadata']['name']}"
        uid = one["metadata"]["annotations"][RUN_KEY]
        assert uid in by_uid, f"{who} was applied by a run that there was not"
        run, applied = by_uid[uid], _applied(one)
        assert run.began - _GRAIN <= applied, f"{who} was applied at {applied}, before {run}"
        assert run.ended is None or applied <= run.ended + _GRAIN, (
            f"{who} was applied at {applied}, after {run} was over"
        )


def _applied(live: Object) -> datetime:
    """Return when we changed an object last. An application that changes nothing leaves the time,
    and the run that an object names is always one that changed it: its uid is new."""
    times = [
        one["time"] for one in live["metadata"]["managedFields"] if one["manager"] == FIELD_MANAGER
    ]
    return datetime.fromisoformat(max(times))
