"""The texts for messages that a workflow of ours can't read (worker.sdk.message_input)."""

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

from temporal_plans.domain.values.model import Value
from temporal_plans.messages.plans import CommandMessage, PlanInput
from temporal_plans.messages.services import PodCommandMessage
from temporal_plans.worker.sdk.message_input import MessageInput
from unit.worker.sdk_kit import Scripted, activation, command, run_of


class Door(Value):
    phase: str = ""


@workflow.defn
class Asked:
    @workflow.run
    async def run(self, input: PlanInput) -> None: ...

    @workflow.update
    def knock(self, door: Door) -> None: ...

    @workflow.query
    def look(self, door: Door) -> None: ...


def started(input: bytes) -> tuple[WorkflowActivation, WorkflowCommand]:
    act = activation("initialize_workflow")
    act.jobs[0].initialize_workflow.arguments.append(json(input))
    made = command("fail_workflow_execution")
    fail(made.fail_workflow_execution.failure)
    return act, made


def updated(name: str, input: bytes) -> tuple[WorkflowActivation, WorkflowCommand]:
    act = activation("do_update")
    job = act.jobs[0].do_update
    job.name, job.protocol_instance_id = name, "u"
    job.input.append(json(input))
    made = command("update_response", rejected=True)
    made.update_response.protocol_instance_id = "u"
    fail(made.update_response.rejected)
    return act, made


def asked(name: str, input: bytes) -> tuple[WorkflowActivation, WorkflowCommand]:
    act = activation("query_workflow")
    job = act.jobs[0].query_workflow
    job.query_type, job.query_id = name, "q"
    job.arguments.append(json(input))
    made = command("respond_to_query")
    made.respond_to_query.query_id = "q"
    fail(made.respond_to_query.failed)
    return act, made


def json(data: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=data)


def fail(failure: object) -> None:
    failure.message = "the SDK's text"  # type: ignore[attr-defined]
    failure.application_failure_info.type = "ValidationError"  # type: ignore[attr-defined]


PHAS = 'phas: unknown key (found "x"); did you mean phase?'


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(updated("knock", b'{"phas": "x"}'), PHAS, id="update"),
        pytest.param(asked("look", b'{"phas": "x"}'), PHAS, id="query"),
        pytest.param(
            updated("knok", b"{}"),
            'update: unknown name (found "knok"); did you mean knock?',
            id="unknown update",
        ),
        pytest.param(
            asked("lok", b"{}"),
            'query: unknown name (found "lok"); did you mean look?',
            id="unknown query",
        ),
        pytest.param(
            updated("knock", b'"x"'),
            'input: must be a mapping of keys to values (found "x")',
            id="no object",
        ),
        pytest.param(
            started(b'{"name": "x", "phasse": {}}'),
            "phasse: unknown key (found {}); did you mean phases?",
            id="start",
        ),
        pytest.param(
            started(b'{"name": "x", "phases": {"a": {"steps": {"w": {"slep": "1s"}}}}}'),
            "phases.a.steps.w: has no work; write exactly one of",
            id="start with a step",
        ),
        pytest.param(
            started(rb'{"name": "\ud800"}'),
            "input: is not JSON: unexpected end of hex escape",
            id="no JSON",
        ),
        pytest.param(updated("knock", b"{}"), "the SDK's text", id="another cause"),
    ],
)
def test_the_failure_names_field_value_and_fix(
    sent: tuple[WorkflowActivation, WorkflowCommand], expected: str
) -> None:
    act, failing = sent
    inner = Scripted()
    inner.commands = [failing]
    [answer] = MessageInput(inner, run_of(Asked)).activate(act).successful.commands
    failures = (
        answer.fail_workflow_execution.failure,
        answer.update_response.rejected,
        answer.respond_to_query.failed,
    )
    assert "".join(failure.message for failure in failures).startswith(expected)


@pytest.mark.parametrize(
    ("kind", "input", "expected"),
    [
        pytest.param(CommandMessage, {"phas": "x"}, PHAS, id="plan"),
        pytest.param(
            PodCommandMessage,
            {"pdo": "x"},
            'pod: is missing; pdo: unknown key (found "x"); did you mean pod?',
            id="pod",
        ),
        pytest.param(
            CommandMessage,
            "x",
            'input: must be a mapping of keys to values (found "x")',
            id="no object",
        ),
        pytest.param(CommandMessage, {"phase": "x"}, "", id="a good one"),
    ],
)
def test_a_malformed_signal_keeps_its_problems(
    kind: type[CommandMessage | PodCommandMessage], input: object, expected: str
) -> None:
    assert kind.model_validate(input).malformed == expected
