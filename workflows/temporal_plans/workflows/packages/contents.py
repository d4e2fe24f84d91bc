"""The contents that an instance holds in the content store: the packages of its configurations."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.messages.contents import ContentHold
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT

_LAST_RELEASE_TIMEOUT = timedelta(minutes=2)
"""How long an instance that ends tries to release its contents."""


class HeldContents:
    """``held`` are the digests that are held; ``changed`` is called when that may be others, and
    ``problem`` with what is wrong with a content. What can't be held is tried again by the next
    run of the workflow."""

    def __init__(
        self,
        held: Iterable[str],
        changed: Callable[[], None],
        problem: Callable[[str, str], None],
    ) -> None:
        self.held = set(held)
        self._changed = changed
        self._problem = problem
        self._under_way: set[str] = set()
        self._failed: set[str] = set()

    @property
    def idle(self) -> bool:
        return not self._under_way

    def keep(self, wanted: set[str]) -> None:
        """Begin to hold what is wanted, and release what is not."""
        for digest in sorted((wanted ^ self.held) - self._under_way - self._failed):
            self._under_way.add(digest)
            activity = "hold_content" if digest in wanted else "release_content"
            asyncio.create_task(self._change(activity, digest))  # noqa: RUF006  # _under_way

    async def _change(self, activity: str, digest: str) -> None:
        try:
            await _execute(activity, digest)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._failed.add(digest)
            self._under_way.discard(digest)
            self._problem(activity, typed_failure_text(error))
            return
        if activity == "hold_content":
            self.held.add(digest)
        else:
            self.held.discard(digest)
        self._under_way.discard(digest)
        self._changed()

    async def release_all(self) -> None:
        """Release everything, at the end. What can't be released expires with its holder."""
        for digest in sorted(self.held):
            try:
                await _execute("release_content", digest, within=_LAST_RELEASE_TIMEOUT)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                workflow.logger.warning("content %s is not released: %s", digest, error.cause)


async def _execute(activity: str, digest: str, within: timedelta | None = None) -> None:
    await workflow.execute_activity(
        activity,
        ContentHold(digest=digest, holder=workflow.info().workflow_id),
        start_to_close_timeout=timedelta(minutes=1),
        schedule_to_close_timeout=within,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        summary=f"{activity} {digest[:12]}",
    )
