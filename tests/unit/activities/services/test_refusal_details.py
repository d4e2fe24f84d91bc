"""Activities that fail for a refusal: the failure's details have it as a value."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from builders.services import pod, service
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.activities.owners.scheduled import ScheduledActivities
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.activities.services.pods import PodActivities
from temporal_plans.activities.services.upkeep import UpkeepActivities
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.services.launch import LaunchPlace
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.plans import OwnerContext, PodContext
from temporal_plans.messages.pools import Holdings
from temporal_plans.messages.schedules import ScheduledPlan
from temporal_plans.messages.services import PreparePodInput
from temporal_plans.messages.upkeep import DeregisterInput, EraseInput

BUSY = Refusal(
    code=Code.UNINSTALLING, reasons=(Reason(field="service", problem="is leaving", fix="wait"),)
)


class Owner:
    """A service that gives one answer to queries and updates; an exception is raised."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def get_workflow_handle(self, *_: object, **__: object) -> "Owner":
        return self

    async def describe(self) -> None:
        raise RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")

    async def query(self, *_: object, **__: object) -> object:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    execute_update = query


def _client(answer: object) -> Client:
    return cast(Client, cast(Any, Owner(answer)))


async def _failure(activity: Callable[[Any], Awaitable[object]], request: object) -> Refusal:
    with pytest.raises(ApplicationError) as failed:
        await ActivityEnvironment().run(activity, request)
    assert failed.value.non_retryable
    refusal = refusal_in(failed.value)
    assert refusal is not None
    return refusal


def _upkeep(answer: object) -> UpkeepActivities:
    return UpkeepActivities(_client(answer), cast(Placement, None))


async def test_an_update_that_the_service_refuses() -> None:
    refused = WorkflowUpdateFailedError(refusal_error(BUSY))
    erase = EraseInput(service="service/s", task="web-0-server")
    assert await _failure(_upkeep(refused).erase_task, erase) == BUSY


@pytest.mark.parametrize("type", ["UnprocessedUpdate", "AcceptedUpdateCompletedWorkflow"])
async def test_an_update_that_the_service_has_not_seen_is_retried(type: str) -> None:
    """The connection of the worker broke while it had the update."""
    lost = WorkflowUpdateFailedError(ApplicationError("no worker processed it", type=type))
    erase = EraseInput(service="service/s", task="web-0-server")
    with pytest.raises(WorkflowUpdateFailedError):
        await ActivityEnvironment().run(_upkeep(lost).erase_task, erase)


async def test_a_service_that_does_not_run() -> None:
    gone = RPCError("no such workflow", RPCStatusCode.NOT_FOUND, b"")
    erase = EraseInput(service="service/s", task="web-0-server")
    assert (await _failure(_upkeep(gone).erase_task, erase)).code == Code.NOT_FOUND


async def test_a_service_that_needs_its_pods_again() -> None:
    request = DeregisterInput(service="service/s", pool="p")
    upkeep = _upkeep(Holdings(keys=("service/s:web-0",)))
    assert (await _failure(upkeep.deregister, request)).code == Code.IN_USE


async def test_a_scheduled_start_that_the_service_refuses() -> None:
    activities = ScheduledActivities(_client(Outcome.refusing(BUSY)))
    request = ScheduledPlan(service="s", plan="backup", schedule="s/backup")
    assert await _failure(activities.start_scheduled_plan, request) == BUSY


@pytest.mark.parametrize(
    ("changes", "field"), [({"pod": "wbe"}, "pod"), ({"tasks": ("srever",)}, "tasks")]
)
async def test_a_launch_of_what_the_configuration_has_not(
    changes: dict[str, object], field: str
) -> None:
    request = PreparePodInput(
        context=OwnerContext(owner="s", workflow_id="service/s", plan="deploy"),
        pods=PodContext(),
        step="s/deploy/web/0",
        element="deploy/web/0",
        pod="web",
        index=0,
        tasks=("server",),
        attempt="1",
    )
    place = LaunchPlace(config_id="c1", spec=service(pod("web", 1)))
    activities = PodActivities(_client(place), cast(Placement, None))
    [reason] = (await _failure(activities.prepare_pod, request.but(**changes))).reasons
    assert reason.field == field
    assert reason.fix.startswith("it has: ")
