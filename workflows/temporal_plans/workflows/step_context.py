"""What a step kind is given: the step it works for, and the few things it may say about it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from temporalio import workflow

from temporal_plans.domain import transitions
from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.parameters import substitute
from temporal_plans.domain.plan import StepSpec, Work
from temporal_plans.domain.transitions import StepState, TaskProgress
from temporal_plans.messages.plan import ServiceContext

if TYPE_CHECKING:
    from temporal_plans.workflows.machine import StepMachine


@dataclass(frozen=True)
class StepPlace:
    """Where a step stands. ``address`` is the workflow that messages about it go to: its own, or
    its phase's when it runs inline; ``element`` is plan/phase/step."""

    index: int
    spec: StepSpec
    address: str
    element: str
    backoff: Backoff
    context: ServiceContext | None


class StepContext:
    """A running attempt at a step, as its kind sees it.

    For step kinds that users write: ``name``, ``input``, ``arguments``, ``attempt``, ``say``.
    """

    def __init__(self, machine: "StepMachine") -> None:
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
        """How often the step has been begun since it was last restarted, this time included."""
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

    def say(self, reason: str) -> None:
        """Tell people what the step is waiting for or doing."""
        self.set(self.state.but(reason=reason))

    def begin(self) -> None:
        """The work starts now: from here on an interrupt no longer holds it back."""
        self.committed = True
        if self.state.tasks:
            return  # taken up again where an earlier run of the workflow left it
        self.set(transitions.begun(self.state, workflow.now()))

    def set(self, state: StepState) -> None:
        self._machine.set(state)

    def launched(self, tasks: dict[str, TaskProgress]) -> None:
        """Tasks are being started; what was heard of them before counts now."""
        self._machine.launched(tasks)

    @property
    def leaving(self) -> bool:
        """The workflow is about to continue elsewhere, or to end."""
        return self._machine.leaving

    def take_offer(self) -> None:
        """The pool is about to be asked: what it said before counts no more."""
        self._machine.offered = False

    @property
    def offered(self) -> bool:
        """Whether the pool has said that it is worth asking."""
        return self._machine.offered

    def agent_lost(self, reservation: Reservation) -> bool:
        """Whether its agent was given up since it was made; both are the Pool's times."""
        lost = self._machine.lost_agents.get(reservation.agent)
        return lost is not None and lost >= reservation.created

    async def until(
        self, condition: Callable[[], bool], *, within: timedelta | None = None
    ) -> bool:
        """Wait in a way that the step may be left: its state says all that a later run needs.
        Whether the condition came true in time."""
        self.can_leave = True
        try:
            await workflow.wait_condition(condition, timeout=within)
        except TimeoutError:
            return False
        finally:
            self.can_leave = False
        return True

    async def until_time(self, moment: datetime) -> None:
        """Wait until then, likewise."""
        self.can_leave = True
        try:
            left = moment - workflow.now()
            if left.total_seconds() > 0:
                await workflow.sleep(left, summary=self.place.element)
        finally:
            self.can_leave = False
