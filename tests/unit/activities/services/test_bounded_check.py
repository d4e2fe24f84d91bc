"""The check of a configuration always has an answer."""

import logging
import threading
from datetime import timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from temporal_plans.activities.services.bounded_check import bounded_check
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.services import ChangeProblems


def broken() -> ChangeProblems:
    raise LookupError("no such thing")


async def test_a_check_that_fails_is_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = await ActivityEnvironment().run(bounded_check, broken)
    [reason] = answer.problems
    assert "failed: LookupError: no such thing" in reason.problem
    assert "in broken" in caplog.text


async def test_a_check_that_does_not_end_is_a_reason() -> None:
    end = threading.Event()

    def endless() -> ChangeProblems:
        end.wait()
        return ChangeProblems()

    short = timedelta(milliseconds=10)
    try:
        answer = await ActivityEnvironment().run(bounded_check, endless, short)
    finally:
        end.set()
    assert "did not end" in answer.problems[0].problem


async def test_the_worker_logs_tracebacks_of_rules(caplog: pytest.LogCaptureFixture) -> None:
    found = ChangeProblems(problems=(Reason(problem="the check x failed", trace="in line 7"),))
    with caplog.at_level(logging.ERROR):
        assert await ActivityEnvironment().run(bounded_check, lambda: found) == found
    assert "in line 7" in caplog.text
