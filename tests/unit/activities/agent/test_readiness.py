"""Why a readiness check fails is reported until it passes."""

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from subprocess import SubprocessError

import pytest

from temporal_plans.activities.agent.host.records import StartRecord
from temporal_plans.activities.agent.sandbox.checks import (
    CheckResult,
    ReportPace,
    wait_until_ready,
)
from temporal_plans.activities.agent.supervisor.supervision import age_of
from temporal_plans.domain.services.spec import ReadinessCheck

CHECK = ReadinessCheck(cmd="x", interval=0, delay=0, timeout=5)

PASSED = CheckResult(True)

UNKNOWN = (OSError("too many processes"), SubprocessError("a limit"))
"""What says nothing about a task."""


def failed(problem: str) -> CheckResult:
    return CheckResult(False, problem)


async def reports(results: Sequence[CheckResult | Exception], pace: ReportPace) -> list[str]:
    """What is reported before the check passes, which it does at last."""
    left, reported = list(results), list[str]()

    async def run() -> CheckResult:
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    async def report(problem: str) -> None:
        reported.append(problem)

    await wait_until_ready(CHECK, run, 0.0, report, pace)
    assert not left
    return reported


async def test_each_reason_is_reported_once() -> None:
    results = [failed("exit code 1: no"), failed("exit code 1: no"), failed("exit code 2")]
    found = await reports([*results, *UNKNOWN, PASSED], ReportPace(0, 0))
    assert found == [
        "the readiness check fails: exit code 1: no",
        "the readiness check fails: exit code 2",
    ]


async def test_a_task_that_is_soon_ready_reports_nothing() -> None:
    assert await reports([failed("exit code 1"), failed("exit code 2"), PASSED], ReportPace()) == []


async def test_reports_are_bounded() -> None:
    """A check whose output has the time in it."""
    results = [failed(f"exit code 1: at {number}") for number in range(10)]
    assert len(await reports([*results, PASSED], ReportPace(first=0))) == 1


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_the_age_of_a_task_is_not_taken_from_the_wall_clock(hours: int) -> None:
    """Else a check with a delay would begin an hour late where the clock was set back."""
    at = datetime.now(UTC) + timedelta(hours=hours)
    ticks = (time.clock_gettime(time.CLOCK_BOOTTIME) - 5) * os.sysconf("SC_CLK_TCK")
    started = StartRecord(pid=1, start=int(ticks), supervisor=1, boot="this", at=at)
    assert 5 <= age_of(started) < 60


async def test_a_delay_counts_from_the_start() -> None:
    async def passes() -> CheckResult:
        return PASSED

    async def reported(problem: str) -> None:
        raise AssertionError(problem)

    before = time.monotonic()
    await wait_until_ready(CHECK.but(delay=3600.3), passes, 3600.0, reported)
    assert 0.3 <= time.monotonic() - before < 60
