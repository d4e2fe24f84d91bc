"""Which activations are divided (worker.sdk.refused_update)."""

from collections.abc import Sequence

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.sdk.jobs import kind_of
from temporal_plans.worker.sdk.refused_update import RefusedUpdate
from unit.worker.sdk_kit import Scripted, WithUpdate, activation, command, kinds, run_of


class Failing(Scripted):
    """Fails its workflow task in an activation, counted from 1."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        completion = super().activate(act)
        if len(self.activations) == self._at:
            completion.failed.failure.message = "it fails"
        return completion


@pytest.mark.parametrize(
    ("jobs", "parts"),
    [
        pytest.param(
            ["do_update", "fire_timer", "do_update", "resolve_activity"],
            [["do_update", "do_update"], ["fire_timer", "resolve_activity"]],
            id="beside-what-needs-no-message",
        ),
        pytest.param(
            ["notify_has_patch", "do_update", "fire_timer"],
            [["notify_has_patch", "do_update"], ["fire_timer"]],
            id="a-replay-with-a-patch",
        ),
        pytest.param(["do_update"], [["do_update"]], id="alone"),
        pytest.param(["fire_timer"], [["fire_timer"]], id="without-updates"),
        pytest.param(["query_workflow"], [["query_workflow"]], id="a-query"),
        pytest.param(
            ["do_update", "signal_workflow", "fire_timer"],
            [["do_update", "signal_workflow", "fire_timer"]],
            id="with-a-signal",
        ),
        pytest.param(
            ["initialize_workflow", "do_update"],
            [["initialize_workflow", "do_update"]],
            id="a-start",
        ),
    ],
)
def test_updates_have_an_activation_of_their_own(
    jobs: Sequence[str], parts: Sequence[Sequence[str]]
) -> None:
    inner = Scripted()
    RefusedUpdate(inner, run_of(WithUpdate)).activate(activation(*jobs, at=3))
    assert [[kind_of(job) for job in one.jobs] for one in inner.activations] == parts
    around = {(one.run_id, one.timestamp.seconds, one.history_length) for one in inner.activations}
    assert around == {("run", 3, 15)}


def test_the_commands_of_both_parts_are_one_completion() -> None:
    class Answering(Scripted):
        """Has a command in each activation."""

        def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
            has_update = any(job.HasField("do_update") for job in act.jobs)
            kind = "update_response" if has_update else "start_timer"
            self.commands = [command(kind, rejected=has_update)]
            return super().activate(act)

    patch = RefusedUpdate(Answering(), run_of(WithUpdate))
    completion = patch.activate(activation("fire_timer", "do_update"))
    assert kinds(completion) == ["update_response", "start_timer"]


@pytest.mark.parametrize(("at", "parts"), [(1, 1), (2, 2)])
def test_a_part_that_fails_fails_the_workflow_task(at: int, parts: int) -> None:
    inner = Failing(at)
    completion = RefusedUpdate(inner, run_of(WithUpdate)).activate(
        activation("do_update", "fire_timer")
    )
    assert completion.failed.failure.message == "it fails"
    assert len(inner.activations) == parts
