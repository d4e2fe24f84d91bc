"""A step that is one child workflow."""

from typing import Any

from temporalio import workflow
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_plans.domain.plan import WorkflowWork
from temporal_plans.workflows.kinds.activity import arguments_of, retry_policy
from temporal_plans.workflows.step_context import StepContext


async def run_workflow(step: StepContext) -> Any:
    """Starts it under the given id, else one below the step's, and waits for its end."""
    work = step.work
    assert isinstance(work, WorkflowWork)
    step.begin()
    return await workflow.execute_child_workflow(
        work.type,
        args=arguments_of(step, work.input, work.inputs),
        id=str(step.substituted(work.id)) if work.id else f"{step.place.element}/{work.type}",
        task_queue=work.task_queue,
        execution_timeout=work.timeout,
        retry_policy=retry_policy(work.retry),
        cancellation_type=ChildWorkflowCancellationType.TRY_CANCEL,
        parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
        static_summary=step.place.element,
    )
