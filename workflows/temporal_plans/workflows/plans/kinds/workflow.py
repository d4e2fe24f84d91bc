"""A step that is one child workflow."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_plans.domain.kinds.workflow import WorkflowWork
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.plans.kinds.activity import arguments_of, retry_policy

RETRY_INTERVAL = timedelta(seconds=2)


async def run(step: StepAttempt) -> Any:
    """Start the workflow under its given id, else an id below the step's, and wait for its end."""
    work = step.work
    assert isinstance(work, WorkflowWork)
    step.begin()
    workflow_id = str(step.substituted(work.id)) if work.id else f"{step.place.element}/{work.type}"
    if not 0 < len(workflow_id) <= 1000:
        raise ApplicationError(f"id: must have 1 to 1000 characters (found {len(workflow_id)})")
    while True:
        try:
            return await _execute(step, work, workflow_id)
        except WorkflowAlreadyStartedError:  # that of an earlier attempt takes time to stop
            step.say(f"waits until workflow {workflow_id}, which is already running, has ended")
            await workflow.sleep(RETRY_INTERVAL, summary=f"until {workflow_id} has ended")


async def _execute(step: StepAttempt, work: WorkflowWork, workflow_id: str) -> Any:
    return await workflow.execute_child_workflow(
        work.type,
        args=arguments_of(step, work.input, work.inputs),
        id=workflow_id,
        task_queue=work.task_queue,
        execution_timeout=work.timeout,
        retry_policy=retry_policy(work.retry),
        cancellation_type=ChildWorkflowCancellationType.TRY_CANCEL,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=step.place.element,
    )
