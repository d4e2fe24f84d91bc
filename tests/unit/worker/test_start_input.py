"""What is done about inputs that a workflow of ours can't use (worker.sdk.start_input)."""

from collections.abc import Sequence

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.common import RawValue

from temporal_plans.domain.values.model import Value
from temporal_plans.worker.plugin import WORKFLOWS
from temporal_plans.worker.sdk.start_input import StartInput
from unit.worker.sdk_kit import Scripted, activation, details_of, kinds, run_of

JSON = Payload(metadata={"encoding": b"json/plain"}, data=b'{"a": 1}')
NULL = Payload(metadata={"encoding": b"binary/null"})
STRANGE = Payload(data=b"?")


class Input(Value):
    a: int


@workflow.defn
class Taking:
    @workflow.run
    async def run(self, input: Input) -> None: ...


@workflow.defn
class DoingWithout:
    @workflow.run
    async def run(self, input: Input | None = None) -> None: ...


@workflow.defn(dynamic=True)
class Dynamic:
    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> None: ...


class Failing(Scripted):
    """Fails its workflow tasks."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        super().activate(act)
        completion = WorkflowActivationCompletion()
        completion.failed.failure.message = "broken"
        return completion


def start(*payloads: Payload) -> WorkflowActivation:
    act = activation("signal_workflow", "initialize_workflow")
    act.jobs[1].initialize_workflow.arguments.extend(payloads)
    return act


def found(completion: WorkflowActivationCompletion) -> str:
    (command,) = completion.successful.commands
    failure = command.fail_workflow_execution.failure
    assert failure.application_failure_info.type == "InvalidInput"
    return failure.message.partition("(found ")[2].partition(");")[0]


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        pytest.param([], "nothing", id="none"),
        pytest.param([NULL], "null", id="null"),
        pytest.param([JSON, JSON], "2 inputs", id="two"),
    ],
)
def test_what_no_workflow_of_ours_takes_does_not_reach_it(
    payloads: list[Payload], expected: str
) -> None:
    inner = Scripted()
    patch = StartInput(inner, run_of(Taking))
    assert found(patch.activate(start(*payloads))) == expected
    assert not inner.activations
    (answer,) = patch.activate(activation("query_workflow")).successful.commands
    assert expected in answer.respond_to_query.failed.message
    patch.activate(activation("remove_from_cache"))
    assert len(inner.activations) == 1


def test_an_input_that_cannot_be_decoded_is_why() -> None:
    patch = StartInput(Failing(), run_of(Taking))
    assert found(patch.activate(start(STRANGE))).startswith("no encoding, which can't be decoded: ")


def test_a_failure_for_another_reason_stays_one_of_the_task() -> None:
    patch = StartInput(Failing(), run_of(Taking))
    completion = patch.activate(start(JSON))
    assert completion.failed.failure.message == "broken"
    assert patch.activate(activation("query_workflow")).HasField("failed")


def test_a_failure_with_the_wrong_type_is_the_inputs() -> None:
    plain = Payload(metadata={"encoding": b"binary/plain"}, data=b"?")
    assert found(StartInput(Failing(), run_of(Taking)).activate(start(plain))) == "bytes"


def test_the_engines_workflows_take_one_input_each() -> None:
    assert [len(details_of(one).defn.arg_types or ()) for one in WORKFLOWS] == [1] * len(WORKFLOWS)


@pytest.mark.parametrize("payloads", [[], [NULL]])
def test_a_workflow_that_does_without_gets_nothing(payloads: list[Payload]) -> None:
    inner = Scripted()
    assert kinds(StartInput(inner, run_of(DoingWithout)).activate(start(*payloads))) == []
    assert len(inner.activations) == 1


@pytest.mark.parametrize(
    ("of", "is_ours", "applies"),
    [
        pytest.param(Taking, True, True, id="ours"),
        pytest.param(Taking, False, False, id="the-developers-own"),
        pytest.param(Dynamic, True, False, id="dynamic"),
    ],
)
def test_whom_it_is_for(of: type, is_ours: bool, applies: bool) -> None:
    assert StartInput.applies_to(run_of(of, is_ours=is_ours)) is applies


class Ending(Scripted):
    """Fails its workflow, as for an input that does not validate."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        super().activate(act)
        completion = WorkflowActivationCompletion()
        command = completion.successful.commands.add()
        command.fail_workflow_execution.failure.message = "the workflow's own"
        return completion


@pytest.mark.parametrize(
    ("payload", "continued", "kept"),
    [
        pytest.param(Payload(metadata=JSON.metadata, data=b'{"b": 1}'), True, True, id="newer"),
        pytest.param(Payload(metadata=JSON.metadata, data=b'{"b": 1}'), False, False, id="first"),
        pytest.param(JSON, True, False, id="its own failure"),
    ],
)
def test_a_run_that_continues_another_does_not_end_for_its_input(
    payload: Payload, continued: bool, kept: bool
) -> None:
    """A worker of the version that wrote it can read it: the workflow task fails instead."""
    act = start(payload)
    if continued:
        act.jobs[1].initialize_workflow.continued_from_execution_run_id = "before"
    completion = StartInput(Ending(), run_of(Taking)).activate(act)
    assert completion.HasField("failed") is kept
    if kept:
        assert "can't be decoded" in completion.failed.failure.message
