"""What environments and products have in common: a command log, and messages that can't be used."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.fleets.requests import FleetRequest
from temporal_plans.messages.plans import CommandLog
from temporal_plans.workflows.fleets.room import Room
from temporal_plans.workflows.fleets.turns import Turns
from temporal_plans.workflows.mechanics.handlers import should_continue_as_new
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.log import CommandLogger

Answer = TypeVar("Answer")

ACTIVITY_TIMEOUT = timedelta(seconds=60)
FAILED_WORK_INTERVAL = timedelta(minutes=1)
"""The pause before background work is tried again that failed in an unexpected way."""

_TIMEOUTS = {"decide_environment": timedelta(minutes=10)}
"""Those of activities that may take longer: 20,000 entities on a busy machine."""
RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30)
)


class Audited:
    """A workflow that runs until it is deleted. A subclass sets ``log`` and ``room``."""

    kind: ClassVar[str]
    """The noun for it in messages."""
    commands: ClassVar[tuple[str, ...]] = ()
    """The signals that people may mistype."""
    until_gone: ClassVar[frozenset[str]] = frozenset()
    """The updates that are taken until it is gone: they come from workflows, which hear of the
    end in another way."""

    grows: ClassVar[frozenset[str]] = frozenset()
    """The updates that add to what it carries from run to run, and are refused when it is full."""

    log: CommandLogger
    turns: Turns
    room: Room
    _changed: bool = True
    over: bool = False

    def changed(self) -> None:
        """Have the main loop look for work."""
        self._changed = True

    def done(self, verb: str, request: FleetRequest, message: str) -> Outcome:
        """Record a request that was carried out, and return its outcome."""
        return self.recorded(verb, request, Outcome(result=Result.DONE, message=message))

    def recorded(self, verb: str, request: FleetRequest, outcome: Outcome) -> Outcome:
        command = Command(by=request.by, reason=request.reason)
        self.log.command(verb, command, outcome, via="update", now=workflow.now())
        self.changed()
        return outcome

    def refuse(self, refusal: Refusal | None) -> None:
        """Raise the refusal, if there is one: in a validator nothing is written."""
        if refusal is not None:
            raise refusal_error(refusal)

    def refuse_late(self, verb: str, request: FleetRequest, refusal: Refusal | None) -> None:
        """Record and raise a refusal that came up after the request was accepted; also that it is
        being deleted meanwhile."""
        refusal = refusal or self.ending_refusal()
        if refusal is not None:
            self.recorded(verb, request, Outcome.refusing(refusal))
            raise refusal_error(refusal)

    async def checked(
        self, verb: str, request: FleetRequest, activity: str, argument: Any, kind: type[Answer]
    ) -> Answer:
        """Return the answer of an activity that may refuse a request; its refusal is recorded. Of
        several requests, the one that came first has its answer first."""
        async with self.turns.place(activity) as place:
            try:
                answer = await ask(activity, argument, kind)
            except ActivityError as error:
                self.refuse_late(verb, request, refusal_of(error.cause))
                raise
            await place.comes()
        self.refuse_late(verb, request, None)
        return answer

    def ending_refusal(self) -> Refusal | None:
        """Return why nothing more can be asked of it: what would be answered would be lost."""
        if not self.over:
            return None
        text = f"the {self.kind} is being deleted"
        return Refusal.of(Code.ENDING, text, field=self.kind, fix="ask again when it is gone")

    def update_refusal(self, name: str, request: BaseModel | None) -> Refusal | None:
        """Return why an update is not taken, whatever it is about (the guard asks this)."""
        ending = None if name in self.until_gone else self.ending_refusal()
        if ending is not None or request is None or name not in self.grows:
            return ending
        return self.room.refusal(self.kind, request)

    async def failed(self, subject: str, error: Exception) -> None:
        """Record background work that failed, and pause: it is begun again at once otherwise,
        without end."""
        self.record_problem(subject, f"{type(error).__name__}: {error}"[:500])
        if workflow.patched("pause after failed work"):
            await workflow.sleep(FAILED_WORK_INTERVAL)

    def may_continue_as_new(self, limit: int) -> bool:
        ready = not self.over and workflow.all_handlers_finished()
        return should_continue_as_new(limit) and ready and not self.room.full

    @workflow.query(name="log", description="The commands that it was given.")
    def command_log(self) -> CommandLog:
        return self.log.log

    def record_problem(self, name: str, text: str, trace: str = "") -> None:
        """Record a message whose handler failed (the guard calls this)."""
        self.log.problem(name, text, now=workflow.now(), trace=trace)

    @workflow.signal(dynamic=True, description="Signals with unknown names are kept in the log.")
    def on_unknown_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.record_problem(name, f"unknown signal {name}; {suggestion(name, self.commands)}")


async def ask(activity: str, argument: Any, kind: type[Answer], *, summary: str = "") -> Answer:
    """Return the answer of an activity of the same queue, which heartbeats: it is retried until it
    has one, soon after its worker was killed, too. A refusal is an ActivityError."""
    answer: Answer = await workflow.execute_activity(
        activity,
        argument,
        result_type=kind,
        start_to_close_timeout=_TIMEOUTS.get(activity, ACTIVITY_TIMEOUT),
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=RETRY,
        summary=summary[:190] or None,
    )
    return answer


def refusal_in_failure(error: ActivityError) -> Refusal:
    """Return the refusal that an activity failed with."""
    return refusal_of(error.cause)


def start(work: Any) -> None:
    """Begin work in the background: it ends by itself, or is begun again by the next run."""
    asyncio.create_task(work)  # noqa: RUF006


__all__ = ["ApplicationError", "Audited", "ask", "refusal_in_failure", "start"]
