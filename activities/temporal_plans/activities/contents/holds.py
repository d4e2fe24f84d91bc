"""Activities with which workflows hold and release contents."""

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

from temporal_plans.activities.contents.errors import ContentError, ContentUnavailable
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.messages.contents import ContentHold, Holders


class ContentActivities:
    """``client`` reaches the holders, ``contents`` is the store."""

    def __init__(self, client: Client, contents: ContentStore) -> None:
        self._client = client
        self._contents = contents

    @activity.defn(name="hold_content")
    async def hold_content(self, hold: ContentHold) -> None:
        """Hold a content for a workflow, before it uses its digest. Fails with the refusal of a
        missing or damaged content; it is not retried then."""
        async with heartbeats():
            try:
                await self._contents.hold(hold.digest, hold.holder)
            except ContentError as error:
                final = not isinstance(error, ContentUnavailable)
                raise refusal_error(error.refusal, non_retryable=final) from None

    @activity.defn(name="release_content")
    async def release_content(self, hold: ContentHold) -> None:
        """Release a content for a workflow that no longer uses its digest."""
        async with heartbeats():
            await self._contents.release(hold.digest, hold.holder)

    @activity.defn(name="closed_holders")
    async def closed_holders(self, holders: Holders) -> Holders:
        """Return those of these workflows that are closed, or that the server does not know."""
        async with heartbeats():
            closed = await gather_bounded(map(self._is_closed, holders.holders))
        pairs = zip(holders.holders, closed, strict=True)
        return Holders(holders=tuple(holder for holder, gone in pairs if gone))

    async def _is_closed(self, workflow_id: str) -> bool:
        run = await described(self._client, workflow_id)
        return run is None or run.status is not WorkflowExecutionStatus.RUNNING
