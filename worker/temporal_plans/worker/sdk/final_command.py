"""Runs that end more than once."""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance

from temporal_plans.worker.sdk.jobs import failed_answers, kind_of
from temporal_plans.worker.sdk.patch import Patch, Run

_FINAL = frozenset(
    {
        "cancel_workflow_execution",
        "complete_workflow_execution",
        "continue_as_new_workflow_execution",
        "fail_workflow_execution",
    }
)


class OneFinalCommand(Patch):
    """Keeps the first final command of a run, and answers queries in the place of further ones.

    What the SDK does: it instantiates the workflow's class in the first activation, and again in
    every later one as long as that has failed. When ``__init__`` raises an ``ApplicationError``,
    the first activation fails the workflow. A query that came with the first workflow task has an
    activation of its own in the same task: ``__init__`` raises again, and the query's completion
    fails the workflow, too. The server refuses the two ("invalid command sequence:
    [FailWorkflowExecution, FailWorkflowExecution], command FailWorkflowExecution must be the last
    command"), and so the workflow task fails forever. Two within one completion do no harm: the
    core keeps the first (https://github.com/temporalio/sdk-rust/pull/776).

    Reproduction: start a workflow whose ``@workflow.init`` raises an ``ApplicationError``, query
    it, and only then start its worker (tests/workflows/test_final_command.py).

    What ours does: removes final commands from all activations of a run after the first that had
    one, and answers the queries there with the failure.

    Upstream: no upstream thread known.
    """

    def __init__(self, inner: WorkflowInstance, run: Run) -> None:
        super().__init__(inner, run)
        self._ended = False

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, and drop the final commands of a run that has ended before."""
        completion = self._inner.activate(act)
        if any(kind_of(command) in _FINAL for command in completion.successful.commands):
            if self._ended:
                _drop_final(act, completion)
            self._ended = True
        return completion


def _drop_final(act: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
    commands = completion.successful.commands
    final = [command for command in commands if kind_of(command) in _FINAL]
    for command in final:
        commands.remove(command)
    commands.extend(failed_answers(act, final[0].fail_workflow_execution.failure))
