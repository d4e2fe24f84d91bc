"""The command log and what is kept in it; texts and messages at the door."""

import pytest
from pydantic import BaseModel, ValidationError
from temporalio.exceptions import ApplicationError

from builders.boards import board_of
from builders.clock import NOW
from builders.plans import phase_spec, step_spec
from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans.board import PhaseBoard
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.plans.explain import explain
from temporal_plans.domain.plans.transitions import failed
from temporal_plans.domain.values.model import WITH_DEFAULTS
from temporal_plans.messages.plan_views import step_view
from temporal_plans.messages.plans import CommandLog, LogEntry, PlanInput
from temporal_plans.messages.services import ServiceInput
from temporal_plans.workflows.plans.log import ENTRIES_LIMIT, SIZE_LIMIT, CommandLogger


def entry(number: int) -> LogEntry:
    return LogEntry(
        at=NOW, verb=str(number), via="signal", outcome=Outcome(result=Result.DONE, message="done")
    )


@pytest.mark.parametrize("already", [0, ENTRIES_LIMIT - 1, ENTRIES_LIMIT, ENTRIES_LIMIT + 500])
def test_the_newest_entries_are_kept_and_the_others_counted(already: int) -> None:
    """An earlier release kept more: what is carried over is cut at the next entry."""
    logger = CommandLogger(CommandLog(entries=tuple(map(entry, range(already))), dropped=7))
    logger.problem("newest", "not understood", now=NOW)
    log = logger.log
    assert len(log.entries) == min(already + 1, ENTRIES_LIMIT)
    assert len(log.entries) + log.dropped == already + 1 + 7
    assert log.entries[-1].verb == "newest"


def test_an_entry_is_bounded() -> None:
    logger = CommandLogger(CommandLog())
    outcome = Outcome(result=Result.DONE, message="m" * 5000, waiting=("phase web is interrupted",))
    command = Command(parameters={"LONG": "v" * 10_000, "SHORT": "v" * 200})
    logger.command("start", command, outcome, via="update", now=NOW)
    logger.problem("stop", "p" * 5000, now=NOW)
    told, problem = logger.log.entries
    assert told.parameters == {"LONG": "v" * 197 + "...", "SHORT": "v" * 200}
    assert (len(told.outcome.message), told.outcome.waiting) == (1000, ())
    assert (len(problem.outcome.message), http_code(problem.outcome)) == (1000, 400)


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
    text = typed_failure_text(error)
    assert (text.startswith(begins), len(text)) == (True, length)
    assert text.endswith("...") is (length == 1000)


def test_a_failure_that_is_kept_once_is_shown_everywhere() -> None:
    board = board_of(phase_spec("web", step_spec("a", ApprovalWork())))
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


def test_the_log_is_bounded_in_bytes() -> None:
    """However long their parameters are, the newest commands are kept, and the log stays small."""
    logger = CommandLogger(CommandLog())
    long = {f"{'p' * 190}{i}": "x" * 1000 for i in range(100)}
    command = Command(parameters=long, reason="r" * 500)
    refused = Outcome(result=Result.REFUSED, message="m" * 5000)
    for number in range(40):
        logger.command(f"start-{number}", command, refused, via="signal", now=NOW)
    kept = logger.log
    assert len(kept.model_dump_json(context=WITH_DEFAULTS)) < 2 * SIZE_LIMIT
    assert kept.entries[-1].verb == "start-39"
    assert 0 < len(kept.entries) < 40
    assert len(kept.entries) + kept.dropped == 40
    assert CommandLogger(kept).log == kept
