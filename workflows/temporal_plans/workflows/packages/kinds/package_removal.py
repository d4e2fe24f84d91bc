"""A step that deletes all objects of an instance, on the worker of its cluster."""

from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.kinds.package_removal import PackageRemovalWork
from temporal_plans.domain.plans import transitions
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.messages.packages import (
    PackageRun,
    RemovalInput,
    TasksOutcome,
    TasksResult,
)
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.packages.kinds.package_tasks import TASKS_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt

_PAUSE, _LONG_PAUSE = timedelta(seconds=1), timedelta(seconds=5)
"""Between two questions after services that are being uninstalled."""


async def run(step: StepAttempt) -> None:
    """Uninstall the services of nested packages, then delete the objects, and wait until nothing is
    left."""
    work, context = step.work, step.place.context
    assert isinstance(work, PackageRemovalWork)
    if context is None or context.part is None:
        step.set(transitions.failed(step.state, "only plans of a package have such steps"))
        return
    package = PackageRun.model_validate(context.part).package
    step.set(transitions.working(step.state, workflow.now()))
    order = RemovalInput(owner=context.workflow_id, package=package, volumes=work.volumes)
    stays = ""
    for activity in ("remove_services", "remove_instance"):
        result = await _removed(step, activity, order)
        if result is None:
            return
        stays = result.reason
    step.set(transitions.completed(step.state, workflow.now(), stays or None))


async def _removed(step: StepAttempt, activity: str, order: RemovalInput) -> TasksResult | None:
    """Repeat a removal until nothing is left that it is to remove, and return what stays; None when
    the attempt is over without that."""
    while True:
        result = await _execute(step, activity, order.but(shown=step.state.reason))
        match result.outcome:
            case TasksOutcome.DONE:
                return result
            case TasksOutcome.FAILED:
                step.set(transitions.failed(step.state, result.reason))
                return None
            case TasksOutcome.RETRY:
                backoff = step.place.backoff
                step.set(transitions.delayed(step.state, result.reason, backoff, workflow.now()))
                return None
            case TasksOutcome.WAITING:
                unchanged = result.reason == step.state.reason
                step.say(result.reason)
                if activity == "remove_services":
                    pause = _LONG_PAUSE if unchanged else _PAUSE
                    await step.sleep_until(workflow.now() + pause)


async def _execute(step: StepAttempt, activity: str, order: RemovalInput) -> TasksResult:
    running = workflow.start_activity(
        activity,
        order,
        result_type=TasksResult,
        task_queue=cluster_queue(order.package.cluster),
        start_to_close_timeout=TASKS_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        summary=step.place.element,
    )
    try:
        await step.wait_until(running.done)
        result: TasksResult = await running
    finally:
        if not running.done():
            running.cancel()
    return result
