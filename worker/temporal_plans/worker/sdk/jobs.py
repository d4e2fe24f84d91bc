"""Jobs of activations, and commands of completions, as patches use them."""

from collections.abc import Iterable

from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

WITHOUT_EVENTS = frozenset({"query_workflow", "remove_from_cache"})
"""Jobs that no history event stands behind. The core puts them into activations of their own."""


def kinds_of(act: WorkflowActivation) -> set[str]:
    """Return the names of the activation's jobs, as in ``WorkflowActivationJob.variant``."""
    return {kind_of(job) for job in act.jobs}


def kind_of(message: WorkflowActivationJob | WorkflowCommand) -> str:
    """Return the name of the job or command, as in its ``variant``."""
    return message.WhichOneof("variant") or ""


def failed_answers(act: WorkflowActivation, failure: Failure) -> Iterable[WorkflowCommand]:
    """Return a command for each query of the activation that answers it with the failure."""
    for job in act.jobs:
        if job.HasField("query_workflow"):
            answer = WorkflowCommand()
            answer.respond_to_query.query_id = job.query_workflow.query_id
            answer.respond_to_query.failed.CopyFrom(failure)
            yield answer
