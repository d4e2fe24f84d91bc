"""Which turns leave something behind, and which are refused (worker.steady_runner)."""

from collections.abc import Sequence

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.steady_runner import MEMO, PATCH, TAKEN_UP_ANEW, Turns


class Inner:
    """The workflow itself: ``commands`` are what its next turn comes to."""

    def __init__(self) -> None:
        self.commands: list[WorkflowCommand] = []
        self.turns = 0
        self.evicted: list[str] = []

    def activate(self, turn: WorkflowActivation) -> WorkflowActivationCompletion:
        self.turns += 1
        completion = WorkflowActivationCompletion()
        completion.successful.SetInParent()
        completion.successful.commands.extend(self.commands)
        self.commands = []
        return completion


def turn(*jobs: str, at: int, replaying: bool = False, patch: str = "") -> WorkflowActivation:
    """``at``: the seconds of its workflow task; ``query`` is a direct one."""
    made = WorkflowActivation(run_id="run", is_replaying=replaying, history_length=at * 5)
    made.timestamp.seconds = at
    if patch:
        made.jobs.add().notify_has_patch.patch_id = patch
    for job in jobs:
        if job == "query":
            made.jobs.add().query_workflow.query_id = "legacy_query"
        elif job == "local":
            made.jobs.add().resolve_activity.is_local = True
        else:
            getattr(made.jobs.add(), job).SetInParent()
    return made


def command(kind: str, seq: int = 0, *, rejected: bool = False) -> WorkflowCommand:
    made = WorkflowCommand()
    getattr(made, kind).SetInParent()
    if seq:
        getattr(made, kind).seq = seq
    if rejected:
        made.update_response.rejected.message = "no"
    return made


def kinds(completion: WorkflowActivationCompletion) -> list[str]:
    return [command.WhichOneof("variant") or "" for command in completion.successful.commands]


def begun(inner: Inner, *, updates: bool = True, replaying: bool = False, patch: str = "") -> Turns:
    turns = Turns(inner.activate, has_updates=updates, evict=inner.evicted.append)
    turns.activate(turn("initialize_workflow", at=1, replaying=replaying, patch=patch))
    return turns


MEMOED = "modify_workflow_properties"


@pytest.mark.parametrize(
    ("jobs", "commands", "left"),
    [
        pytest.param(["fire_timer"], [], True, id="nothing"),
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
def test_a_turn_that_came_to_nothing_leaves_a_memo(
    jobs: Sequence[str], commands: list[WorkflowCommand], left: bool
) -> None:
    inner = Inner()
    turns = begun(inner)
    inner.commands = list(commands)
    completion = turns.activate(turn(*jobs, at=2))
    assert (MEMOED in kinds(completion)) is left
    if left:
        memo = completion.successful.commands[-1].modify_workflow_properties.upserted_memo
        assert memo.fields[MEMO].data == b"10"


@pytest.mark.parametrize(
    ("updates", "replaying", "patch", "left"),
    [
        pytest.param(True, False, "", True, id="new"),
        pytest.param(True, True, PATCH, True, id="replayed"),
        pytest.param(True, True, "another", False, id="older-than-the-rule"),
        pytest.param(False, False, "", False, id="without-updates"),
    ],
)
def test_runs_that_keep_to_it_are_marked(
    updates: bool, replaying: bool, patch: str, left: bool
) -> None:
    inner = Inner()
    inner.commands = [command("complete_workflow_execution")]
    turns = Turns(inner.activate, has_updates=updates, evict=inner.evicted.append)
    first = turns.activate(turn("initialize_workflow", at=1, replaying=replaying, patch=patch))
    assert kinds(first) == ["set_patch_marker"] * left + ["complete_workflow_execution"]
    assert kinds(turns.activate(turn("fire_timer", at=2))) == [MEMOED] * left


NEW, TAKEN_UP = False, True


@pytest.mark.parametrize(
    ("taken_up", "turns_taken", "forgotten"),
    [
        pytest.param(NEW, ["fire_timer 1", "query 1"], True, id="events-without-a-task"),
        pytest.param(NEW, ["fire_timer 1", "query 1", "query 1"], True, id="asked-twice"),
        pytest.param(NEW, ["fire_timer 2", "query 2"], False, id="a-task-and-a-query"),
        pytest.param(NEW, ["fire_timer 1", "query_workflow 1"], False, id="a-query-in-a-task"),
        pytest.param(NEW, ["query 1"], False, id="nothing-new"),
        pytest.param(NEW, ["local 1", "query 1"], False, id="a-local-activity"),
        pytest.param(NEW, ["do_update 1", "query 1"], False, id="an-update"),
        pytest.param(NEW, ["fire_timer 1", "fire_timer 2", "query 2"], False, id="a-task-since"),
        pytest.param(TAKEN_UP, ["query 1"], False, id="taken-up-nothing-new"),
        pytest.param(TAKEN_UP, ["replay 2", "query 2"], False, id="taken-up-to-its-last-task"),
        pytest.param(TAKEN_UP, ["signal_workflow 2", "query 2"], True, id="taken-up-joined"),
        pytest.param(
            TAKEN_UP, ["replay 2", "fire_timer 2", "query 2"], True, id="taken-up-without-a-task"
        ),
        pytest.param(
            TAKEN_UP,
            ["signal_workflow 2", "signal_workflow 3", "query 3"],
            False,
            id="a-task-later",
        ),
        pytest.param(TAKEN_UP, ["do_update 2", "query 2"], False, id="taken-up-by-an-update"),
    ],
)
def test_after_a_query_with_more_than_the_tasks_brought_the_history_is_read_anew(
    taken_up: bool, turns_taken: Sequence[str], forgotten: bool
) -> None:
    inner = Inner()
    turns = begun(inner, updates=False, replaying=taken_up)
    for taken in turns_taken:
        job, at = taken.split()
        replayed = job == "replay"
        act = turn("fire_timer" if replayed else job, at=int(at), replaying=replayed)
        assert turns.activate(act).HasField("successful")
    assert set(inner.evicted) == ({"run"} if forgotten else set())
    taken_before = inner.turns
    completion = turns.activate(turn("signal_workflow", at=9))
    assert completion.HasField("failed") is forgotten
    assert inner.turns == taken_before + (not forgotten)
    if forgotten:
        assert completion.failed.failure.message == TAKEN_UP_ANEW
        assert turns.activate(turn("remove_from_cache", at=3)).HasField("successful")
