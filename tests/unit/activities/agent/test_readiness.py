"""Why a readiness check fails is reported until it passes."""

import time
from collections.abc import Sequence
from subprocess import SubprocessError

from temporal_plans.activities.agent.sandbox.checks import (
    CheckResult,
    ReportPace,
    wait_until_ready,
)
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

    await wait_until_ready(CHECK, run, time.time(), report, pace)
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
