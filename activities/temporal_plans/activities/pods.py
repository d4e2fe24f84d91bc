"""The activity that readies a pod for launch: resources first, then the launch on record."""

from uuid import NAMESPACE_URL, uuid5

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.heartbeat import heartbeats
from temporal_plans.activities.offers import release_once, reserve_in_pool
from temporal_plans.domain.requirements import RequirementError, requirement_for
from temporal_plans.domain.service import (
    PodSpec,
    task_id,
    task_instance_name,
)
from temporal_plans.messages.cluster import (
    AGENT_LOST,
    LaunchIntent,
    LaunchOrder,
    ReleaseInput,
    ReserveInput,
    TaskLaunch,
)
from temporal_plans.messages.plan import (
    PreparedTask,
    PreparePodInput,
    PreparePodResult,
    ServiceContext,
)
from temporal_plans.messages.service import LaunchPlace, LaunchTarget

CUT_OFF = "AcceptedUpdateCompletedWorkflow"
"""The type of failure when a run of the Service ended under an update; the next run takes it."""


class PodActivities:
    """``client`` is where the service and the pool run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="prepare_pod")
    async def prepare_pod(self, request: PreparePodInput) -> PreparePodResult:
        """Reserve for the whole pod and record the launch; or the reasons why nothing fits yet.

        Idempotent by ``attempt``: the pool reserves once a pod, and task ids are made of it and of
        what is reserved: what an attempt recorded on a place that was taken from it meanwhile, is
        another launch. A pod that was given up where it is (reference 6.4) moves, and moves once:
        the Service names the reservation that it leaves until a launch on another one is on record,
        and the Pool moves nothing that has left that one.

        Raises ApplicationError, not retryable, when another attempt would end the same way: the
        configuration has no such pod or task, no agent could ever satisfy the requirement, or the
        Service refuses the launch. All else is worth another try.
        """
        try:
            async with heartbeats():
                return await self._prepare(request)
        except RequirementError as error:
            raise _hopeless(error, str(error)) from error
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == CUT_OFF:
                raise
            text = f"{request.context.workflow_id} refuses the launch: {cause}"
            raise _hopeless(cause, text) from error

    async def _prepare(self, request: PreparePodInput) -> PreparePodResult:
        context = request.context
        place = await self._place(request, request.config_id or context.config_id)
        pod = _pod(place, request)
        answer = await reserve_in_pool(
            self._client,
            ReserveInput(
                pool=context.pool,
                requirement=requirement_for(
                    pod,
                    request.index,
                    owner=context.workflow_id,
                    notify=request.step,
                    permanent=bool(place.replaces),
                    replaces=place.replaces,
                    launches=pod.sets_of(request.tasks),
                    in_use=place.in_use,
                ),
            ),
        )
        if answer.reservation is None:
            return PreparePodResult(refusals=answer.refusals, in_use=place.in_use)
        launch = str(uuid5(NAMESPACE_URL, f"{request.attempt}/{answer.reservation.id}"))
        launches = _launches(request, place.spec.name, launch)
        order = await self._record(
            context,
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
            # An attempt before this one recorded it, when the target was another.
            place = await self._place(request, order.config_id)
            pod = _pod(place, request)
        return PreparePodResult(
            reservation=answer.reservation,
            tasks=tuple(_prepared(pod, task, order) for task in launches),
            kill=order.kill,
            config_id=place.config_id,
        )

    async def _record(
        self, context: ServiceContext, intent: LaunchIntent, update_id: str
    ) -> LaunchOrder:
        """Raises ApplicationError, to be tried again, when the agent was given up in between. A
        place there that the Service never heard of is given back, for nobody would decide on it."""
        service = self._client.get_workflow_handle(context.workflow_id)
        try:
            order: LaunchOrder = await service.execute_update(
                "record_launch", intent, id=update_id, result_type=LaunchOrder
            )
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if not isinstance(cause, ApplicationError) or cause.type != AGENT_LOST:
                raise
            if not any(cause.details):
                held = intent.reservation
                given_back = ReleaseInput(pool=context.pool, key=held.key, reservation=held.id)
                await release_once(self._client, given_back)
            raise ApplicationError(cause.message, type=AGENT_LOST) from error
        return order

    async def _place(self, request: PreparePodInput, config_id: str) -> LaunchPlace:
        """The configuration to launch, and what the pod has to leave for it."""
        service = self._client.get_workflow_handle(request.context.workflow_id)
        place: LaunchPlace = await service.query(
            "launch_target",
            LaunchTarget(
                pod=request.pod, index=request.index, tasks=request.tasks, config_id=config_id
            ),
            result_type=LaunchPlace,
        )
        return place


def _pod(place: LaunchPlace, request: PreparePodInput) -> PodSpec:
    """The pod to launch, if it is there with all the tasks."""
    where = f"configuration {place.config_id} of {place.spec.name}"
    try:
        pod = place.spec.pod(request.pod)
    except KeyError:
        known = ", ".join(pod.type for pod in place.spec.pods)
        text = f"{where} has no pod {request.pod!r}; it has: {known}"
        raise ApplicationError(text, type="UnknownPod", non_retryable=True) from None
    for task in request.tasks:
        try:
            pod.task(task)
        except KeyError:
            known = ", ".join(task.name for task in pod.tasks)
            text = f"pod {pod.type} in {where} has no task {task!r}; it has: {known}"
            raise ApplicationError(text, type="UnknownTask", non_retryable=True) from None
    return pod


def _hopeless(cause: BaseException, text: str) -> ApplicationError:
    kind = cause.type if isinstance(cause, ApplicationError) else None
    return ApplicationError(text, type=kind or type(cause).__name__, non_retryable=True)


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
    """A paused task runs the pause command for ever: one that is meant to run is complete with
    that, one that is meant to finish can't be before it is resumed."""
    task = pod.task(launch.task)
    paused = launch.task in order.paused
    return PreparedTask(
        task_id=launch.task_id,
        task=launch.task,
        goal=task.goal,
        readiness_check=task.readiness_check is not None and not paused,
        paused=paused,
    )
