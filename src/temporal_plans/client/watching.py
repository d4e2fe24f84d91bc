"""Following a plan: one view after the other until nothing more will happen.

A query costs the server little and the history nothing, so the tree is asked for four times a
second while it changes and less often while it does not. Loss of the server or the worker is told
and waited out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

from temporal_plans.client.connection import ServerUnreachableError
from temporal_plans.client.errors import WorkerUnreachable
from temporal_plans.client.plan_run import PlanRun, Trouble

FASTEST = timedelta(seconds=0.25)
SLOWEST = timedelta(seconds=2)
SILENT_AFTER = timedelta(seconds=3)
"""An answer that takes longer is told as trouble, though it is still waited for."""

PATIENCE = timedelta(minutes=5)
"""How long server and worker may stay away before watching fails."""


async def watch(
    look: Callable[[], Awaitable[PlanRun]],
    *,
    patience: timedelta = PATIENCE,
    fastest: timedelta = FASTEST,
    pause: timedelta = SLOWEST,
) -> AsyncIterator[PlanRun | Trouble]:
    """Every new look of a plan, the first one at once; ends after the one at rest.

    A run that was superseded is not the end: its service is about to begin the next.

    Raises what ``look`` raises at the first time, and later ``ServerUnreachableError`` or
    ``WorkerUnreachable`` when nothing was heard for ``patience``. ``pause`` is before the next try.
    """
    seen: PlanRun | None = None
    superseded_since: datetime | None = None
    silent_since: datetime | None = None
    interval = fastest
    while True:
        looking = asyncio.ensure_future(look())
        try:
            while not await _done(looking):
                silent_since = silent_since or datetime.now(UTC) - SILENT_AFTER
                if seen is not None:
                    yield Trouble("the answer is slow in coming", silent_since)
            run = looking.result()
        except (ServerUnreachableError, WorkerUnreachable) as error:
            now = datetime.now(UTC)
            silent_since = silent_since or now
            if seen is None or now - silent_since >= patience:
                raise
            yield Trouble(str(error), silent_since)
            await asyncio.sleep(pause.total_seconds())
            continue
        finally:
            looking.cancel()
        if run != seen or silent_since is not None:
            interval = fastest
            yield run
        else:
            interval = min(interval * 1.25, SLOWEST)
        now = datetime.now(UTC)
        superseded_since = (superseded_since or now) if run.superseded else None
        if run.at_rest or (superseded_since and now - superseded_since >= patience):
            return
        seen, silent_since = run, None
        await asyncio.sleep(interval.total_seconds())


async def _done(looking: "asyncio.Future[PlanRun]") -> bool:
    done, _ = await asyncio.wait([looking], timeout=SILENT_AFTER.total_seconds())
    return bool(done)
