"""The activity that prepares a pod's launch: it reserves resources and records the launch."""

from uuid import NAMESPACE_URL, uuid5

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.mechanics.failure_text import message_of
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import (
    non_retryable,
    refusal_in,
    was_not_processed,
)
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.domain.services.launch import (
    LaunchIntent,
    LaunchOrder,
    LaunchPlace,
    LaunchTarget,
)
from temporal_plans.domain.services.requirements import requirement_for
from temporal_plans.domain.services.spec import PodSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_id, task_instance_name
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError
from temporal_plans.messages.pools import ReleaseInput, ReserveInput
from temporal_plans.messages.services import (
    PreparedTask,
    PreparePodInput,
    PreparePodResult,
)


class PodActivities:
    """``client`` reaches the service; ``placement`` assigns the resources."""

    def __init__(self, client: Client, placement: Placement) -> None:
        self._client = client
        self._placement = placement

    @activity.defn(name="prepare_pod")
    async def prepare_pod(self, request: PreparePodInput) -> PreparePodResult:
        """Reserve for the whole pod and record the launch; or return why nothing fits yet.

        Idempotent by ``attempt``: a pod has one reservation, and task ids are derived from the
        attempt and the reservation. If the reservation was taken away after an attempt recorded
        its launch, the next attempt is another launch. A pod that must be replaced (behaviour 6.4)
        moves once: the Service names the reservation to leave until a launch on another one is
        recorded, and the Pool moves no pod that has left it already.

        Raises a non-retryable ApplicationError when a retry would fail as well: the configuration
        has no such pod or task, no agent could ever satisfy the requirement, or the Service refuses
        the launch. Other errors may be retried.
        """
        try:
            async with heartbeats():
                return await self._prepare(request)
        except RefusedError as error:
            raise non_retryable(error, str(error)) from error
        except WorkflowUpdateFailedError as error:
            if was_not_processed(error.cause):
                raise
            text = f"{request.context.workflow_id} refuses the launch: {message_of(error.cause)}"
            raise non_retryable(error.cause, text) from error

    async def _prepare(self, request: PreparePodInput) -> PreparePodResult:
        context, pods = request.context, request.pods
        place = await self._place(request, request.config_id or pods.config_id)
        pod = _pod(place, request)
        requirement = requirement_for(
            pod,
            request.index,
            owner=context.workflow_id,
            notify=request.step,
            permanent=bool(place.replaces),
            replaces=place.replaces,
            launches=pod.sets_of(request.tasks),
            in_use=place.in_use,
        )
        answer = await self._placement.reserve(
            ReserveInput(pool=pods.pool, requirement=requirement)
        )
        if answer.reservation is None:
            return PreparePodResult(refusals=answer.refusals, in_use=place.in_use)
        launch = str(uuid5(NAMESPACE_URL, f"{request.attempt}/{answer.reservation.id}"))
        launches = _launches(request, place.spec.name, launch)
        order = await self._record(
            request,
            LaunchIntent(
                owner=request.step,
                step=request.element,
                pod=request.pod,
                index=request.index,
                config_id=place.config_id,
                reservation=answer.reservation,
                tasks=launches,
                asked=request.asked,
                reserved=answer.at,
            ),
            f"launch-{launch}",
        )
        if order.config_id not in ("", place.config_id):
            # An earlier attempt recorded it, when the target was another configuration.
            place = await self._place(request, order.config_id)
            pod = _pod(place, request)
        return PreparePodResult(
            reservation=answer.reservation,
            tasks=tuple(_prepared(pod, task, order) for task in launches),
            kill=order.kill,
            config_id=place.config_id,
        )

    async def _record(
        self, request: PreparePodInput, intent: LaunchIntent, update_id: str
    ) -> LaunchOrder:
        """Record the launch in the Service. Raises a retryable ApplicationError when the agent was
        released meanwhile. A reservation there that the Service has not recorded is released, for
        no workflow would ever release it."""
        service = self._client.get_workflow_handle(request.context.workflow_id)
        try:
            order: LaunchOrder = await service.execute_update(
                "record_launch", intent, id=update_id, result_type=LaunchOrder
            )
        except WorkflowUpdateFailedError as error:
            refusal = refusal_in(error.cause)
            if refusal is None or refusal.code != Code.AGENT_LOST:
                raise
            if not _is_recorded(error.cause):
                held = intent.reservation
                message = ReleaseInput(pool=request.pods.pool, key=held.key, reservation=held.id)
                await self._placement.release(message)
            raise refusal_error(refusal, type="AgentLost", non_retryable=False) from error
        return order

    async def _place(self, request: PreparePodInput, config_id: str) -> LaunchPlace:
        """Return the configuration to launch, and the reservation that the pod leaves for it."""
        service = self._client.get_workflow_handle(request.context.workflow_id)
        place: LaunchPlace = await service.query(
            "launch_target",
            LaunchTarget(
                pod=request.pod, index=request.index, tasks=request.tasks, config_id=config_id
            ),
            result_type=LaunchPlace,
        )
        return place


def _is_recorded(refused: BaseException) -> bool:
    """Whether the Service has recorded the reservation for an earlier launch."""
    return isinstance(refused, ApplicationError) and any(refused.details[1:])


def _pod(place: LaunchPlace, request: PreparePodInput) -> PodSpec:
    """Return the pod to launch. Raises ApplicationError if it or one of the tasks is missing."""
    config = f"configuration {place.config_id} of {place.spec.name}"
    try:
        pod = place.spec.pod(request.pod)
    except KeyError:
        reason = Reason(
            field="pod",
            problem=f"{config} has no pod of that type",
            value=request.pod,
            fix=f"it has: {', '.join(pod.type for pod in place.spec.pods)}",
        )
        raise refusal_error(Refusal(code=Code.NOT_FOUND, reasons=(reason,))) from None
    for task in request.tasks:
        try:
            pod.task(task)
        except KeyError:
            reason = Reason(
                field="tasks",
                problem=f"pod {pod.type} in {config} has no such task",
                value=task,
                fix=f"it has: {', '.join(task.name for task in pod.tasks)}",
            )
            raise refusal_error(Refusal(code=Code.NOT_FOUND, reasons=(reason,))) from None
    return pod


def _launches(request: PreparePodInput, service: str, launch: str) -> tuple[TaskLaunch, ...]:
    return tuple(
        TaskLaunch(
            task_id=task_id(
                service,
                task_instance_name(request.pod, request.index, task),
                launch,
            ),
            task=task,
        )
        for task in request.tasks
    )


def _prepared(pod: PodSpec, launch: TaskLaunch, order: LaunchOrder) -> PreparedTask:
    """Return a task of the launch. A paused task runs the pause command until it is resumed: with
    the goal RUNNING it is complete meanwhile, with FINISH or ONCE it can't be."""
    task = pod.task(launch.task)
    paused = launch.task in order.paused
    return PreparedTask(
        task_id=launch.task_id,
        task=launch.task,
        goal=task.goal,
        readiness_check=task.readiness_check is not None and not paused,
        paused=paused,
    )
