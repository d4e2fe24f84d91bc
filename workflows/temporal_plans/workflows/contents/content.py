"""The workflow ``Content`` (id ``content/<sha256>``): the bytes of a content, and its holders.

Its input is read from the first event of its newest run, which needs no worker. The workflow only
decides how long it stays open: it ends when it had no holder for a day. Holders are workflows; the
closed ones are released once a week, because a terminated workflow releases nothing. Further parts
of a content (``content/<sha256>/2``) have the first part as their holder.

It continues as new with the same bytes. That is rare: a hold is some events, a week without one
eleven.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from temporal_plans.domain.values.text import listed
from temporal_plans.messages.contents import (
    HOLDERS_SIZE_LIMIT,
    ContentHolder,
    ContentPart,
    ContentStatus,
    Holders,
    holders_size,
)
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import should_continue_as_new

KEEP_TIME = timedelta(days=1)
"""How long a content without holders stays open, after it was put or released."""

CHECK_INTERVAL = timedelta(days=7)
"""The time between checks that holders are still open."""

SHOWN_LIMIT = 20
"""Holders that the workflow's details list."""


@workflow.defn(name="Content")
class Content:
    """Keeps the bytes of its input readable as long as they are held."""

    @workflow.init
    def __init__(self, part: ContentPart) -> None:
        now = workflow.now()
        self._part = part
        self._held = dict.fromkeys(part.holders, now)
        """When each holder said last that it holds the content, in this run."""
        self._size = holders_size(self._held)
        self._crowded = part.crowded
        self._kept_until = part.kept_until or now + KEEP_TIME
        self._next_check = part.next_check or now + CHECK_INTERVAL
        self._woken = False
        self._alarm = Alarm(self._wake)

    @workflow.run
    async def run(self, part: ContentPart) -> None:
        require_plugin()
        while not self._is_over():
            self._woken = False
            if should_continue_as_new(part.history_limit):
                workflow.continue_as_new(self._next_input())
            if self._check_is_due():
                await self._check_holders()
                continue
            workflow.set_current_details(self._details())
            self._alarm.at(self._next_check if self._is_held() else self._kept_until)
            await workflow.wait_condition(lambda: self._woken)

    @workflow.signal(
        name="hold",
        description="A workflow begins to hold this content; without holder: keep it for a day.",
    )
    def hold(self, message: ContentHolder) -> None:
        if self._is_malformed("hold", message):
            return
        if not message.holder:
            self._keep()
        elif message.holder in self._held:
            self._held[message.holder] = workflow.now()
        else:
            self._add(message.holder)
        self._wake()

    @workflow.signal(name="release", description="A workflow no longer holds this content.")
    def release(self, message: ContentHolder) -> None:
        if self._is_malformed("release", message):
            return
        self._remove(message.holder)
        self._wake()

    @workflow.query(name="status", description="Who holds this content, or when it ends.")
    def status(self) -> ContentStatus:
        return ContentStatus(
            part=self._part.part,
            parts=self._part.parts,
            holders=tuple(self._held),
            crowded=self._crowded,
            kept_until=self._kept_until,
        )

    def _is_malformed(self, signal: str, message: ContentHolder) -> bool:
        if message.malformed:
            workflow.logger.warning("signal %s: %s", signal, message.malformed)
        return bool(message.malformed)

    # --- holders ----------------------------------------------------------------------------------

    def _add(self, holder: str) -> None:
        """Add a holder. When there is no room, the content stays open until it is terminated: to
        forget a holder would lose its content."""
        size = holders_size([holder])
        if self._size + size > HOLDERS_SIZE_LIMIT:
            self._crowded = True
            workflow.logger.warning("too many holders: it stays open until it is terminated")
            return
        self._held[holder] = workflow.now()
        self._size += size

    def _remove(self, holder: str) -> None:
        if self._held.pop(holder, None) is None:
            return
        self._size -= holders_size([holder])
        if not self._held:
            self._keep()

    def _keep(self) -> None:
        self._kept_until = max(self._kept_until, workflow.now() + KEEP_TIME)

    def _is_held(self) -> bool:
        return bool(self._held) or self._crowded

    def _is_over(self) -> bool:
        return not self._is_held() and workflow.now() >= self._kept_until

    # --- closed holders ---------------------------------------------------------------------------

    def _check_is_due(self) -> bool:
        return self._is_held() and workflow.now() >= self._next_check

    async def _check_holders(self) -> None:
        """Release the holders that are closed. One that said less than a day ago that it holds the
        content stays: a client that puts it again says so for the first part before that runs."""
        began = workflow.now()
        for holder in await self._closed_holders():
            if self._held.get(holder, began) <= began - KEEP_TIME:
                self._remove(holder)
        self._next_check = workflow.now() + CHECK_INTERVAL

    async def _closed_holders(self) -> tuple[str, ...]:
        if not self._held:
            return ()
        try:
            closed: Holders = await workflow.execute_activity(
                "closed_holders",
                Holders(holders=tuple(self._held)),
                result_type=Holders,
                start_to_close_timeout=timedelta(minutes=10),
                schedule_to_close_timeout=timedelta(hours=1),
                heartbeat_timeout=timedelta(seconds=30),
                summary="which holders are closed",
            )
        except ActivityError as error:
            workflow.logger.warning("holders could not be checked: %s", error.cause)
            return ()
        return closed.holders

    # --- time -------------------------------------------------------------------------------------

    def _wake(self) -> None:
        self._woken = True

    def _details(self) -> str:
        if self._crowded:
            return "stays open until it is terminated: it had more holders than fit"
        if self._held:
            return f"held by {listed(tuple(self._held), SHOWN_LIMIT)}"
        return f"without a holder; ends at {self._kept_until:%Y-%m-%d %H:%M} UTC"

    def _next_input(self) -> ContentPart:
        return self._part.but(
            holders=tuple(self._held),
            crowded=self._crowded,
            kept_until=self._kept_until,
            next_check=self._next_check,
        )
