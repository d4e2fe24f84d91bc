"""The command log and what is kept in it; texts and messages at the door."""

from datetime import UTC, datetime

import pytest
from pydantic import BaseModel, ValidationError
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.board import PhaseBoard, PlanBoard
from temporal_plans.domain.commands import Command, Outcome
from temporal_plans.domain.explain import explain
from temporal_plans.domain.plan import ApprovalWork, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.transitions import failed
from temporal_plans.messages.plan import CommandLog, LogEntry, PlanInput
from temporal_plans.messages.service import ServiceInput
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.log import KEPT, CommandLogger
from temporal_plans.workflows.views import step_view

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number: int) -> LogEntry:
    return LogEntry(
        at=NOW, verb=str(number), via="signal", outcome=Outcome(code=200, message="done")
    )


@pytest.mark.parametrize("already", [0, KEPT - 1, KEPT, KEPT + 500])
def test_the_newest_entries_are_kept_and_the_others_counted(already: int) -> None:
    """An earlier release kept more: what is carried over is cut at the next entry."""
    logger = CommandLogger(CommandLog(entries=tuple(map(entry, range(already))), dropped=7))
    logger.problem("newest", "not understood", now=NOW)
    log = logger.log
    assert len(log.entries) == min(already + 1, KEPT)
    assert len(log.entries) + log.dropped == already + 1 + 7
    assert log.entries[-1].verb == "newest"


def test_an_entry_is_bounded() -> None:
    logger = CommandLogger(CommandLog())
    outcome = Outcome(code=200, message="m" * 5000, waiting=("phase web is interrupted",))
    command = Command(parameters={"LONG": "v" * 10_000, "SHORT": "v" * 200})
    logger.command("start", command, outcome, via="update", now=NOW)
    logger.problem("stop", "p" * 5000, now=NOW)
    told, problem = logger.log.entries
    assert told.parameters == {"LONG": "v" * 197 + "...", "SHORT": "v" * 200}
    assert (len(told.outcome.message), told.outcome.waiting) == (1000, ())
    assert (len(problem.outcome.message), problem.outcome.code) == (1000, 400)


@pytest.mark.parametrize(
    ("error", "begins", "length"),
    [
        (ApplicationError("x" * 5000, type="Broken"), "Broken: xxx", 1000),
        (ApplicationError("x" * 5000), "xxx", 1000),
        (ValueError("x" * 5000), "ValueError: xxx", 1000),
        (ValueError("short"), "ValueError: short", 17),
    ],
    ids=["typed", "untyped", "python", "short"],
)
def test_a_failure_text_is_bounded(error: Exception, begins: str, length: int) -> None:
    text = failure_text(error)
    assert (text.startswith(begins), len(text)) == (True, length)
    assert text.endswith("...") is (length == 1000)


def test_a_failure_that_is_kept_once_is_shown_everywhere() -> None:
    spec = PlanSpec(
        name="p",
        phases=(PhaseSpec(name="web", steps=(StepSpec(name="a", work=ApprovalWork()),)),),
    )
    board = PlanBoard(spec)
    web: PhaseBoard = board.phases[0]
    web.set(0, failed(web.steps[0], "no such host"))
    view = step_view(web.spec.steps[0], web.steps[0], "id")
    assert (view.message, view.errors) == ("no such host", ("no such host",))
    (explanation,) = explain(board, 0, 0).explanations
    assert explanation.text == "step a is in error: no such host"


@pytest.mark.parametrize(
    ("model", "fields", "at"),
    [
        (PlanInput, {"name": "p", "started": "2026-01-01T00:00:00"}, "started"),
        (PlanInput, {"name": "p", "history_limit": 49}, "history_limit"),
        (ServiceInput, {"spec": {}, "history_limit": 49}, "history_limit"),
    ],
    ids=["naive-start", "plan-history", "service-history"],
)
def test_the_door(model: type[BaseModel], fields: dict[str, object], at: str) -> None:
    with pytest.raises(ValidationError) as raised:
        model.model_validate(fields)
    assert at in {fault["loc"][0] for fault in raised.value.errors()}
