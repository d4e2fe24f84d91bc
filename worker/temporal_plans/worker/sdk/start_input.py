"""Starts of the engine's workflows with an input that they can't use."""

from collections.abc import Iterable, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.exceptions import ApplicationError
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails

from temporal_plans.worker.sdk.jobs import failed_answers
from temporal_plans.worker.sdk.patch import Patch, Run
from temporal_plans.worker.sdk.payloads import converter_of

_NULL = b"binary/null"
"""The encoding of null, whatever the data converter."""


class StartInput(Patch):
    """Fails a workflow of the engine that was started with an input that it can't use.

    What the SDK does: it calls the workflow's ``__init__`` with what there is, and a plain
    exception out of it (``__init__() missing 1 required positional argument``) fails the workflow
    task, which is retried forever. So do an encoding that the data converter does not know, and
    null, which no converter compares with the type.

    Reproduction: ``temporal workflow start --type Plan --task-queue plans`` without ``--input``.

    What ours does: fails the workflow with a message that says what was found, and answers queries
    with it. The number of inputs is checked before the first activation; whether the data converter
    can read the input, only after the first activation has failed, since that costs as much as
    reading it. Developers' own workflows are left alone: their next version may accept the input.
    A run that continues another is never failed for its input: it has the state of a service or a
    pool, which a worker of the version that wrote it can read. Its workflow task fails instead.

    Upstream: https://github.com/temporalio/features/issues/240, and
    https://github.com/temporalio/sdk-python/issues/608 for the undecodable ones.
    """

    def __init__(self, inner: WorkflowInstance, run: Run) -> None:
        super().__init__(inner, run)
        self._started = False
        self._failure: Failure | None = None

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        return run.is_ours and run.details.defn.name is not None  # a dynamic one takes anything

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation; the first one with an unusable input fails the workflow."""
        if not self._started:
            self._started = True
            return self._start(act)
        if self._failure is not None and act.jobs[0].HasField("query_workflow"):
            return _succeeded(failed_answers(act, self._failure))
        return self._inner.activate(act)

    def _start(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        details = self._run.details
        payloads = [one for job in act.jobs for one in job.initialize_workflow.arguments]
        if found := _unusable(details, payloads):
            return self._fail(found)
        completion = self._inner.activate(act)
        if _is_continued(act):
            return _kept_open(completion, details, payloads)
        if completion.HasField("failed") and (found := _unreadable(details, payloads)):
            return self._fail(found)
        return completion

    def _fail(self, found: str) -> WorkflowActivationCompletion:
        self._failure = _failure(self._run.details, found)
        ending = WorkflowCommand()
        ending.fail_workflow_execution.failure.CopyFrom(self._failure)
        return _succeeded([ending])


def _is_continued(act: WorkflowActivation) -> bool:
    return any(job.initialize_workflow.continued_from_execution_run_id for job in act.jobs)


def _kept_open(
    completion: WorkflowActivationCompletion,
    details: WorkflowInstanceDetails,
    payloads: Sequence[Payload],
) -> WorkflowActivationCompletion:
    """Return a failed workflow task in the place of a workflow that failed because this worker
    can't read what the previous run carried over: another version of the worker can."""
    failing = any(
        command.HasField("fail_workflow_execution") for command in completion.successful.commands
    )
    if not failing or not (found := _unreadable(details, payloads)):
        return completion
    kept = WorkflowActivationCompletion(run_id=completion.run_id)
    kept.failed.failure.CopyFrom(_failure(details, found))
    return kept


def _succeeded(commands: Iterable[WorkflowCommand]) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion()
    completion.successful.commands.extend(commands)
    return completion


def _unusable(details: WorkflowInstanceDetails, payloads: Sequence[Payload]) -> str:
    """Return what was found instead of one input; empty when there is one, or when the workflow
    takes None for it, as a Pool does. Each of the engine's workflows takes one input."""
    if len(payloads) > 1:
        return f"{len(payloads)} inputs"
    if payloads and payloads[0].metadata.get("encoding") != _NULL:
        return ""
    if _is_instance(None, _input_type(details)):
        return ""
    return "null" if payloads else "nothing"


def _unreadable(details: WorkflowInstanceDetails, payloads: Sequence[Payload]) -> str:
    """Return why the data converter can't decode the input, or the wrong type that it decodes it
    to; empty when the type is right."""
    expected = _input_type(details)
    try:
        values = converter_of(details).from_payloads(payloads, [expected] * len(payloads))
    except Exception as error:
        encoding = payloads[0].metadata.get("encoding", b"").decode(errors="replace")
        return f"{encoding or 'no encoding'}, which can't be decoded: {error}"
    return "".join(type(one).__name__ for one in values if not _is_instance(one, expected))


def _input_type(details: WorkflowInstanceDetails) -> Any:
    (expected,) = details.defn.arg_types or [object]
    return expected


def _is_instance(value: object, expected: Any) -> bool:
    try:
        return isinstance(value, expected)
    except TypeError:  # a generic type
        return True


def _failure(details: WorkflowInstanceDetails, found: str) -> Failure:
    error = ApplicationError(
        f"input: {details.defn.name} takes one JSON object (found {found}); pass exactly one,"
        " encoded as this worker's data converter does it",
        type="InvalidInput",
        non_retryable=True,
    )
    failure = Failure()
    details.failure_converter_class().to_failure(error, converter_of(details), failure)
    return failure
