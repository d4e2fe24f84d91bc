"""Checks by developers' rules, which always have an answer: a retry would have the same."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import activity

from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import trace_of
from temporal_plans.messages.services import ChangeProblems

CHECK_TIMEOUT = timedelta(seconds=45)
"""Less than the activity's own timeout, after which it would be retried."""


async def bounded_check(
    check: Callable[[], ChangeProblems], timeout: timedelta = CHECK_TIMEOUT
) -> ChangeProblems:
    """Return the check's answer; its failure, or that it takes too long, as a reason. The worker's
    log gets the tracebacks of developers' rules."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            answer = await asyncio.to_thread(check)  # the developer's rules may block
    except TimeoutError as error:
        return _refusing(
            f"the config validators and plan customizers did not end in {timeout.seconds} s",
            "shorten what they do, or remove them from the worker's plugin",
            error,
        )
    except Exception as error:
        return _refusing(
            f"the check of the configuration failed: {type(error).__name__}: {error}",
            "see the worker's log",
            error,
        )
    for reason in answer.problems:
        if reason.trace:
            activity.logger.error("%s\n%s", reason.problem, reason.trace)
    return answer


def _refusing(problem: str, fix: str, error: BaseException) -> ChangeProblems:
    activity.logger.error("%s", problem, exc_info=error)
    reason = Reason(problem=shortened(problem), fix=fix, trace=trace_of(error))
    return ChangeProblems(problems=(reason,))
