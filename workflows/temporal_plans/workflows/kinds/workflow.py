"""A step that is one child workflow."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_plans.domain.plan import WorkflowWork
from temporal_plans.workflows.kinds.activity import arguments_of, retry_policy
from temporal_plans.workflows.step_context import StepContext

AGAIN = timedelta(seconds=2)


async def run_workflow(step: StepContext) -> Any:
    """Starts it under the given id, else one below the step's, and waits for its end."""
    work = step.work
    assert isinstance(work, WorkflowWork)
    step.begin()
    workflow_id = str(step.substituted(work.id)) if work.id else f"{step.place.element}/{work.type}"
    if not 0 < len(workflow_id) <= 1000:
        raise ApplicationError(f"no workflow can have an id of {len(workflow_id)} characters")
    while True:
        try:
            return await _execute(step, work, workflow_id)
        except WorkflowAlreadyStartedError:  # the one of an earlier attempt takes time to stop
            step.say(f"waits for the end of {workflow_id}, which runs already")
            await workflow.sleep(AGAIN, summary=f"until {workflow_id} is over")


async def _execute(step: StepContext, work: WorkflowWork, workflow_id: str) -> Any:
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
