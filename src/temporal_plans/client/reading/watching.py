"""Watching a plan: poll its tree until the plan is at rest.

A query costs the server little and the history nothing, so the tree is queried four times a second
while it changes, and less often while it does not.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from temporal_plans.client.errors import WorkerUnreachable
from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.domain.plans.stuck import StuckWorkflow

POLL_INTERVAL = timedelta(seconds=0.25)
POLL_INTERVAL_LIMIT = timedelta(seconds=2)

EXAMINE_INTERVAL = timedelta(seconds=10)
"""After this time without a change the plan's workflows are examined."""

SLOW_ANSWER_TIMEOUT = timedelta(seconds=3)
"""After this time without an answer a WatchProblem is reported; the answer is still awaited."""

UNREACHABLE_TIMEOUT = timedelta(minutes=5)
"""How long server or worker may be unreachable before watching fails."""


async def watch(
    show: Callable[[], Awaitable[PlanRun]],
    *,
    stuck: Callable[[], Awaitable[Sequence[StuckWorkflow]]] | None = None,
    timeout: timedelta = UNREACHABLE_TIMEOUT,
    examine_interval: timedelta = EXAMINE_INTERVAL,
    interval: timedelta = POLL_INTERVAL,
    retry_interval: timedelta = POLL_INTERVAL_LIMIT,
) -> AsyncIterator[PlanRun | WatchProblem]:
    """Yield a plan's tree at once, and again whenever it has changed, until the plan is at rest.

    ``stuck`` returns the plan's workflows whose workflow task fails; it is called when nothing has
    changed for ``examine_interval``, and its answer is a WatchProblem.

    A superseded run is not the end: its service is about to start the next one.

    Raises any error of the first ``show``, and later ``ServerUnreachableError`` or
    ``WorkerUnreachable`` when there was no answer for ``timeout``. ``interval`` is the shortest
    between two queries, ``retry_interval`` that after an error.
    """
    seen: PlanRun | None = None
    superseded_since: datetime | None = None
    unanswered_since: datetime | None = None
    delay = interval
    moved = datetime.now(UTC)
    while True:
        query = asyncio.ensure_future(show())
        try:
            while not await _is_answered(query):
                unanswered_since = unanswered_since or datetime.now(UTC) - SLOW_ANSWER_TIMEOUT
                if seen is not None:
                    yield WatchProblem("waiting for an answer", unanswered_since)
            run = query.result()
        except (ServerUnreachableError, WorkerUnreachable) as error:
            now = datetime.now(UTC)
            unanswered_since = unanswered_since or now
            if seen is None or now - unanswered_since >= timeout:
                raise
            yield WatchProblem(str(error), unanswered_since)
            await asyncio.sleep(retry_interval.total_seconds())
            continue
        finally:
            query.cancel()
        if run != seen or unanswered_since is not None:
            delay, moved = interval, datetime.now(UTC)
            yield run
        else:
            delay = min(delay * 1.25, POLL_INTERVAL_LIMIT)
        if stuck and not run.at_rest and datetime.now(UTC) - moved >= examine_interval:
            for one in (await stuck())[:1]:
                yield WatchProblem(one.in_full, one.since or moved)
            moved = datetime.now(UTC)
        now = datetime.now(UTC)
        superseded_since = (superseded_since or now) if run.superseded else None
        if run.at_rest or (superseded_since and now - superseded_since >= timeout):
            return
        seen, unanswered_since = run, None
        await asyncio.sleep(delay.total_seconds())


async def _is_answered(query: "asyncio.Future[PlanRun]") -> bool:
    done, _ = await asyncio.wait([query], timeout=SLOW_ANSWER_TIMEOUT.total_seconds())
    return bool(done)
