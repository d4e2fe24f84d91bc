"""An attempt at a step: the interface between the step machine and the step kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans import transitions
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.parameters import substitute
from temporal_plans.domain.plans.plan import StepSpec
from temporal_plans.domain.plans.transitions import StepState, TaskProgress
from temporal_plans.messages.plans import OwnerContext


@dataclass(frozen=True)
class StepPlace:
    """A step's position in its plan. ``address`` is the workflow that receives messages about the
    step: its own, or its phase's when it runs inline; ``element`` is plan/phase/step."""

    index: int
    spec: StepSpec
    address: str
    element: str
    backoff: Backoff
    context: OwnerContext | None


class Machine(Protocol):
    """The part of the step machine (``plans.machine``) that an attempt uses."""

    place: StepPlace
    state: StepState
    arguments: dict[str, str]
    leaving: bool
    offered: bool

    @property
    def lost_agents(self) -> Mapping[str, datetime]: ...
    def set(self, state: StepState) -> None: ...
    def launched(self, tasks: dict[str, TaskProgress]) -> None: ...


class StepAttempt:
    """A running attempt at a step. Developers' step kinds get it as a ``StepContext``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.place = machine.place
        self.committed = False
        self.can_leave = False

    @property
    def name(self) -> str:
        return self.place.spec.name

    @property
    def work(self) -> Work:
        return self.place.spec.work

    @property
    def state(self) -> StepState:
        return self._machine.state

    @property
    def attempt(self) -> int:
        """The number of attempts since the step's last restart, this one included."""
        return self.state.attempt

    @property
    def arguments(self) -> dict[str, str]:
        """The values of the plan's parameters."""
        return self._machine.arguments

    @property
    def input(self) -> Any:
        """The step's input with ``${NAME}`` replaced by the plan's parameters."""
        return self.substituted(getattr(self.work, "input", None))

    def substituted(self, value: Any) -> Any:
        return substitute(value, self.arguments)

    @property
    def kept(self) -> Any:
        """What an earlier attempt kept since the step's last restart; None without it."""
        return self.state.kept

    def keep(self, value: Any) -> None:
        """Keep JSON for later attempts. Raises ApplicationError, which fails the step, for a value
        that is no JSON or larger than ``KEPT_LIMIT`` bytes."""
        try:
            kept = transitions.checked_kept(value)
        except ValueError as error:
            raise ApplicationError(str(error), type="NotKept", non_retryable=True) from None
        self.set(self.state.but(kept=kept))

    def say(self, reason: str, cause: Cause | None = None) -> None:
        """Set the step's reason: what it waits for or does now."""
        self.set(transitions.with_reason(self.state, reason, cause))

    def begin(self) -> None:
        """Mark the work as started: an interrupt no longer stops it."""
        self.committed = True
        if self.state.tasks:
            return  # resumed: an earlier run of the workflow began it
        self.set(transitions.begun(self.state, workflow.now()))

    def set(self, state: StepState) -> None:
        self._machine.set(state)

    def launched(self, tasks: dict[str, TaskProgress]) -> None:
        """Set the tasks that are being started; their early statuses are applied now."""
        self._machine.launched(tasks)

    @property
    def leaving(self) -> bool:
        """Whether the step was asked to end with its state, for a continue-as-new or an end."""
        return self._machine.leaving

    def clear_offer(self) -> None:
        """Discard earlier offers, before a request to the pool."""
        self._machine.offered = False

    @property
    def offered(self) -> bool:
        """Whether the pool has sent an offer since the last request."""
        return self._machine.offered

    def agent_lost(self, reservation: Reservation) -> bool:
        """Whether the reservation's agent was lost after it was made; both times are the Pool's."""
        lost = self._machine.lost_agents.get(reservation.agent)
        return lost is not None and lost >= reservation.created

    async def wait_until(
        self, condition: Callable[[], bool], *, within: timedelta | None = None
    ) -> bool:
        """Wait for a condition; the step may be left meanwhile, as its state has all that a later
        run needs. Return False when ``within`` passes first."""
        self.can_leave = True
        try:
            await workflow.wait_condition(condition, timeout=within)
        except TimeoutError:
            return False
        finally:
            self.can_leave = False
        return True

    async def sleep_until(self, moment: datetime) -> None:
        """Wait until a time; the step may be left meanwhile."""
        self.can_leave = True
        try:
            left = moment - workflow.now()
            if left.total_seconds() > 0:
                await workflow.sleep(left, summary=self.place.element)
        finally:
            self.can_leave = False
