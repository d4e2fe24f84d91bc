"""A step that deletes all objects of an instance, on the worker of its cluster."""

from temporalio import workflow

from temporal_plans.domain.kinds.package_removal import PackageRemovalWork
from temporal_plans.domain.plans import transitions
from temporal_plans.messages.packages import (
    PackageRun,
    RemovalInput,
    TasksOutcome,
    TasksResult,
    cluster_queue,
)
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.packages.kinds.package_tasks import TASKS_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt


async def run(step: StepAttempt) -> None:
    """Order the deletion, and wait until nothing is left."""
    work, context = step.work, step.place.context
    assert isinstance(work, PackageRemovalWork)
    if context is None or context.part is None:
        step.set(transitions.failed(step.state, "only plans of a package have such steps"))
        return
    package = PackageRun.model_validate(context.part).package
    step.set(transitions.working(step.state, workflow.now()))
    while True:
        running = workflow.start_activity(
            "remove_instance",
            RemovalInput(
                owner=context.workflow_id,
                package=package,
                volumes=work.volumes,
                shown=step.state.reason,
            ),
            result_type=TasksResult,
            task_queue=cluster_queue(package.cluster),
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
        if result.outcome is TasksOutcome.DONE:
            return
        if result.outcome is TasksOutcome.FAILED:
            step.set(transitions.failed(step.state, result.reason))
            return
        if result.outcome is TasksOutcome.RETRY:
            backoff = step.place.backoff
            step.set(transitions.delayed(step.state, result.reason, backoff, workflow.now()))
            return
        step.say(result.reason)
