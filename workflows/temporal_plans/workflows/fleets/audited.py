"""What environments and products have in common: a command log, and messages that can't be used."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.fleets import FleetRequest
from temporal_plans.messages.plans import CommandLog
from temporal_plans.workflows.mechanics.handlers import should_continue_as_new
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.log import CommandLogger

Answer = TypeVar("Answer")

ACTIVITY_TIMEOUT = timedelta(seconds=60)
_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30)
)


class Audited:
    """A workflow that runs until it is deleted. A subclass sets ``log`` and ``changed``."""

    kind: ClassVar[str]
    """The noun for it in messages."""
    commands: ClassVar[tuple[str, ...]] = ()
    """The signals that people may mistype."""

    log: CommandLogger
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
        """Record and raise a refusal that came up after the request was accepted."""
        if refusal is not None:
            self.recorded(verb, request, Outcome.refusing(refusal))
            raise refusal_error(refusal)

    async def checked(
        self, verb: str, request: FleetRequest, activity: str, argument: Any, kind: type[Answer]
    ) -> Answer:
        """Return the answer of an activity that may refuse a request; its refusal is recorded."""
        try:
            return await ask(activity, argument, kind)
        except ActivityError as error:
            self.refuse_late(verb, request, refusal_of(error.cause))
            raise

    def may_continue_as_new(self, limit: int) -> bool:
        return should_continue_as_new(limit) and not self.over and workflow.all_handlers_finished()

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
    """Return the answer of an activity of the same queue, retried until it has one; a refusal is an
    ActivityError."""
    answer: Answer = await workflow.execute_activity(
        activity,
        argument,
        result_type=kind,
        start_to_close_timeout=ACTIVITY_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT if activity in _WITH_HEARTBEAT else None,
        retry_policy=_RETRY,
        summary=summary[:190] or None,
    )
    return answer


_WITH_HEARTBEAT = frozenset({"issue_plan", "fetch_catalogue", "announce", "plan_outcome"})


def refusal_in_failure(error: ActivityError) -> Refusal:
    """Return the refusal that an activity failed with."""
    return refusal_of(error.cause)


def start(work: Any) -> None:
    """Begin work in the background: it ends by itself, or is begun again by the next run."""
    asyncio.create_task(work)  # noqa: RUF006


__all__ = ["ApplicationError", "Audited", "ask", "refusal_in_failure", "start"]
