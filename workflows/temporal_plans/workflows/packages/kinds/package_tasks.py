"""A step that executes tasks of a package, on the worker of the package's cluster."""

import asyncio
from datetime import timedelta
from typing import Any, cast

from pydantic import BaseModel
from temporalio import workflow

from temporal_plans.domain.kinds.package_tasks import PackageTasksWork
from temporal_plans.domain.plans import transitions
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.messages.packages import (
    PackageRun,
    Preparation,
    PrepareInstallation,
    TasksInput,
    TasksOutcome,
    TasksResult,
)
from temporal_plans.messages.plans import OwnerContext
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt

TASKS_TIMEOUT = timedelta(minutes=10)
"""The activity answers after a minute of waiting; before that it renders, applies, and runs the
pods of Pipe tasks."""


async def run(step: StepAttempt) -> None:
    """Execute the tasks until all are done, fail, or are retried after the back-off.

    A step keeps which of its tasks are done, and the token of its run until the next restart.
    """
    work, context = step.work, step.place.context
    assert isinstance(work, PackageTasksWork)
    if context is None or context.part is None:
        step.set(transitions.failed(step.state, "only plans of a package have such steps"))
        return
    package_run = PackageRun.model_validate(context.part)
    step.begin()
    if step.kept is None:
        if not await _prepared(step, package_run):
            return
        step.keep({"attempt": str(workflow.uuid4()), "done": []})
    while tasks := _left(step, work):
        result = await _execute(step, context, package_run, tasks)
        _keep_done(step, work, result)
        match result.outcome:
            case TasksOutcome.FAILED:
                step.set(transitions.failed(step.state, result.reason))
                return
            case TasksOutcome.RETRY:
                state = transitions.delayed(
                    step.state, result.reason, step.place.backoff, workflow.now()
                )
                step.set(state)
                return
            case TasksOutcome.WAITING:
                step.set(step.state.but(status=Status.STARTED))
                step.say(result.reason)
            case TasksOutcome.DONE:
                pass


async def _prepared(step: StepAttempt, run: PackageRun) -> bool:
    """Make the cluster ready: its version, the namespace, the anchor. Return False when the attempt
    is over, because it is not."""
    order = PrepareInstallation(
        package=run.package,
        kubernetes_version=run.kubernetes_version,
        namespace_manifest=run.namespace_manifest,
        create_namespace=run.create_namespace,
        installation=run.installation,
    )
    found: Preparation = await _of_cluster(step, "prepare_installation", order, Preparation, run)
    if found.problems:
        step.set(transitions.failed(step.state, "; ".join(map(str, found.problems))))
    elif found.waits_for:
        backoff = step.place.backoff
        step.set(transitions.delayed(step.state, found.waits_for, backoff, workflow.now()))
    return not (found.problems or found.waits_for)


async def _execute(
    step: StepAttempt, context: OwnerContext, run: PackageRun, tasks: tuple[str, ...]
) -> TasksResult:
    plan, phase, name = step.place.element.split("/")[-3:]
    order = TasksInput(
        owner=context.workflow_id,
        run=run,
        plan=plan,
        phase=phase,
        step=name,
        tasks=tasks,
        arguments=step.arguments,
        attempt=_kept(step)["attempt"],
        shown=step.state.reason,
    )
    result: TasksResult = await _of_cluster(step, "run_package_tasks", order, TasksResult, run)
    return result


async def _of_cluster(
    step: StepAttempt, activity: str, order: BaseModel, result: type[BaseModel], run: PackageRun
) -> Any:
    """Execute an activity of the package's cluster; the step may be left meanwhile."""
    running = workflow.start_activity(
        activity,
        order,
        result_type=result,
        task_queue=cluster_queue(run.package.cluster),
        start_to_close_timeout=TASKS_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        summary=step.place.element,
    )
    try:
        await step.wait_until(running.done)
        return await running
    except asyncio.CancelledError:
        if not running.done():  # a step that is over changes nothing in the cluster any more
            running.cancel()
            await workflow.wait([running])
        raise


def _kept(step: StepAttempt) -> dict[str, Any]:
    return cast(dict[str, Any], step.kept)


def _left(step: StepAttempt, work: PackageTasksWork) -> tuple[str, ...]:
    """Return the tasks that are not done. They are kept by position: names may be long."""
    done = _kept(step)["done"]
    return tuple(task for index, task in enumerate(work.tasks) if index not in done)


def _keep_done(step: StepAttempt, work: PackageTasksWork, result: TasksResult) -> None:
    new = [index for index, task in enumerate(work.tasks) if task in result.done]
    done = _kept(step)["done"]
    step.keep({**_kept(step), "done": sorted({*done, *new})})
