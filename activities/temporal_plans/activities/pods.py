"""The activity that readies a pod for launch: resources first, then the launch on record."""

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.offers import reserve_in_pool
from temporal_plans.domain.requirements import RequirementError, requirement_for
from temporal_plans.domain.service import PodSpec, ServiceSpec, task_id, task_instance_name
from temporal_plans.messages.cluster import (
    ConfigQuery,
    LaunchIntent,
    LaunchOrder,
    ReserveInput,
    TaskLaunch,
)
from temporal_plans.messages.plan import (
    PreparedTask,
    PreparePodInput,
    PreparePodResult,
    ServiceContext,
)

CONFIGS_KEPT = 64

CUT_OFF = "AcceptedUpdateCompletedWorkflow"
"""The type of failure when a run of the Service ended under an update; the next run takes it."""


class PodActivities:
    """``client`` is where the service and the pool run. Configurations are cached: an id's never
    changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._configs: dict[tuple[str, str], ServiceSpec] = {}

    @activity.defn(name="prepare_pod")
    async def prepare_pod(self, request: PreparePodInput) -> PreparePodResult:
        """Reserve for the whole pod and record the launch; or the reasons why nothing fits yet.

        Idempotent by ``attempt``: task ids are made of it, and the pool reserves once a pod.
        Raises ApplicationError, not retryable, when another attempt would end the same way: the
        configuration has no such pod or task, no agent could ever satisfy the requirement, or the
        Service refuses the launch. All else is worth another try.
        """
        try:
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
        config = await self._config(context)
        pod = _pod(config, request)
        answer = await reserve_in_pool(
            self._client,
            ReserveInput(
                pool=context.pool,
                requirement=requirement_for(
                    pod, request.index, owner=context.workflow_id, notify=request.step
                ),
            ),
        )
        if answer.reservation is None:
            return PreparePodResult(refusals=answer.refusals)
        tasks = _launches(request, config.name)
        order = await self._client.get_workflow_handle(context.workflow_id).execute_update(
            "record_launch",
            LaunchIntent(
                owner=request.step,
                step=request.element,
                pod=request.pod,
                index=request.index,
                config_id=context.config_id,
                reservation=answer.reservation,
                tasks=tasks,
            ),
            id=f"launch-{request.attempt}",
            result_type=LaunchOrder,
        )
        return PreparePodResult(
            reservation=answer.reservation,
            tasks=tuple(_prepared(pod, launch) for launch in tasks),
            kill=order.kill,
        )

    async def _config(self, context: ServiceContext) -> ServiceSpec:
        key = context.workflow_id, context.config_id
        if key not in self._configs:
            handle = self._client.get_workflow_handle(context.workflow_id)
            config = await handle.query(
                "config", ConfigQuery(config_id=context.config_id), result_type=ServiceSpec
            )
            if len(self._configs) >= CONFIGS_KEPT:
                self._configs.pop(next(iter(self._configs)))
            self._configs[key] = config
        return self._configs[key]


def _pod(config: ServiceSpec, request: PreparePodInput) -> PodSpec:
    """The pod to launch, if it is there with all the tasks."""
    where = f"configuration {request.context.config_id} of {config.name}"
    try:
        pod = config.pod(request.pod)
    except KeyError:
        known = ", ".join(pod.type for pod in config.pods)
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


def _launches(request: PreparePodInput, service: str) -> tuple[TaskLaunch, ...]:
    return tuple(
        TaskLaunch(
            task_id=task_id(
                service,
                task_instance_name(request.pod, request.index, task),
                request.attempt,
            ),
            task=task,
        )
        for task in request.tasks
    )


def _prepared(pod: PodSpec, launch: TaskLaunch) -> PreparedTask:
    task = pod.task(launch.task)
    return PreparedTask(
        task_id=launch.task_id,
        task=launch.task,
        goal=task.goal,
        readiness_check=task.readiness_check is not None,
    )
