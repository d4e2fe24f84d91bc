"""Which activations leave a memo (worker.sdk.empty_activation)."""

from collections.abc import Sequence

import pytest
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.sdk.empty_activation import MEMO, EmptyActivation
from unit.worker.sdk_kit import Plain, Scripted, WithUpdate, activation, command, kinds, run_of

MEMOED = "modify_workflow_properties"


@pytest.mark.parametrize(
    ("jobs", "commands", "left"),
    [
        pytest.param(["fire_timer"], [], True, id="nothing"),
        pytest.param(["initialize_workflow"], [], True, id="a-start"),
        pytest.param(["resolve_signal_external_workflow"], [], True, id="a-signal-arrived"),
        pytest.param(["signal_workflow", "resolve_activity"], [], True, id="with-a-signal"),
        pytest.param(["fire_timer"], [command("schedule_activity")], False, id="a-command"),
        pytest.param(["fire_timer"], [command("start_timer", 2)], False, id="a-timer"),
        pytest.param(
            ["fire_timer"],
            [command("start_timer", 2), command("cancel_timer", 2)],
            True,
            id="a-timer-of-a-moment",
        ),
        pytest.param(["signal_workflow"], [], False, id="a-signal"),
        pytest.param(
            ["do_update"], [command("update_response", rejected=True)], False, id="refused"
        ),
        pytest.param(
            ["do_update", "fire_timer"],
            [command("update_response", rejected=True)],
            True,
            id="refused-and-a-timer",
        ),
        pytest.param(
            ["do_update", "fire_timer"], [command("update_response")], False, id="an-update"
        ),
        pytest.param(["query_workflow"], [command("respond_to_query")], False, id="a-query"),
        pytest.param(["remove_from_cache"], [], False, id="an-eviction"),
    ],
)
def test_an_activation_without_commands_leaves_a_memo(
    jobs: Sequence[str], commands: list[WorkflowCommand], left: bool
) -> None:
    inner = Scripted()
    inner.commands = list(commands)
    completion = EmptyActivation(inner, run_of(WithUpdate)).activate(activation(*jobs, at=2))
    assert kinds(completion) == [*(kinds_of(commands)), *([MEMOED] if left else [])]
    if left:
        memo = completion.successful.commands[-1].modify_workflow_properties.upserted_memo
        assert memo.fields[MEMO].data == b"10"


def kinds_of(commands: Sequence[WorkflowCommand]) -> list[str]:
    return [command.WhichOneof("variant") or "" for command in commands]


def test_a_failed_workflow_task_stays_as_it_is() -> None:
    class Failing(Scripted):
        def activate(self, act: object) -> WorkflowActivationCompletion:
            completion = WorkflowActivationCompletion()
            completion.failed.failure.message = "broken"
            return completion

    completion = EmptyActivation(Failing(), run_of(WithUpdate)).activate(activation("fire_timer"))
    assert completion.failed.failure.message == "broken"


@pytest.mark.parametrize(
    ("of", "is_ours", "applies"),
    [
        pytest.param(WithUpdate, True, True, id="ours-with-updates"),
        pytest.param(Plain, True, False, id="without-updates"),
        pytest.param(WithUpdate, False, False, id="the-developers-own"),
    ],
)
def test_whom_it_is_for(of: type, is_ours: bool, applies: bool) -> None:
    assert EmptyActivation.applies_to(run_of(of, is_ours=is_ours)) is applies
