"""Runs that end more than once (worker.sdk.final_command)."""

import pytest
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

from temporal_plans.worker.sdk.final_command import OneFinalCommand
from unit.worker.sdk_kit import Scripted, activation, command, kinds, run_of

FINAL = [
    "cancel_workflow_execution",
    "complete_workflow_execution",
    "continue_as_new_workflow_execution",
    "fail_workflow_execution",
]


@pytest.mark.parametrize("first", FINAL)
def test_only_the_first_final_command_of_a_run_is_kept(first: str) -> None:
    inner = Scripted()
    run = OneFinalCommand(inner, run_of())
    inner.commands = [command("start_timer", 1), command(first)]
    assert kinds(run.activate(activation("initialize_workflow"))) == ["start_timer", first]
    inner.commands = [command("fail_workflow_execution"), command("start_timer", 2)]
    assert kinds(run.activate(activation("resolve_activity"))) == ["start_timer"]


def test_the_queries_of_a_dropped_command_get_its_failure() -> None:
    inner = Scripted()
    run = OneFinalCommand(inner, run_of())
    inner.commands = [_broken()]
    run.activate(activation("initialize_workflow"))
    inner.commands = [_broken()]
    queries = activation("query_workflow", "query_workflow")
    for number, job in enumerate(queries.jobs):
        job.query_workflow.query_id = f"q{number}"
    answers = [c.respond_to_query for c in run.activate(queries).successful.commands]
    assert [(a.query_id, a.failed.message) for a in answers] == [("q0", "broken"), ("q1", "broken")]


def test_queries_of_a_run_that_has_ended_are_answered_by_the_run() -> None:
    inner = Scripted()
    run = OneFinalCommand(inner, run_of())
    inner.commands = [command("complete_workflow_execution")]
    run.activate(activation("initialize_workflow"))
    inner.commands = [command("respond_to_query")]
    completion = run.activate(activation("query_workflow"))
    assert kinds(completion) == ["respond_to_query"]
    assert not completion.successful.commands[0].respond_to_query.HasField("failed")


def _broken() -> WorkflowCommand:
    made = command("fail_workflow_execution")
    made.fail_workflow_execution.failure.message = "broken"
    return made
