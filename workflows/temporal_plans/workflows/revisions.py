"""What a standing plan is given by its service: phases to add, to replace, to drop."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from temporal_plans.domain import standing
from temporal_plans.domain.board import PhaseState, PlanBoard
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.plan import PhaseSpec
from temporal_plans.messages.plan import PhasePut, PlanRevision
from temporal_plans.workflows.running_phase import RunningPhase


class Revisions:
    """``number`` is that of the last revision taken.

    A phase that is at work is let go first, for its workflow's id belongs to the next one too; what
    takes its place waits until it has ended.
    """

    def __init__(
        self,
        board: PlanBoard,
        number: int,
        problems: Callable[[PhaseSpec], tuple[Problem, ...]],
    ) -> None:
        self.number = number
        self._board = board
        self._problems = problems
        self._next: dict[str, PhasePut | None] = {}

    def take(
        self, revision: PlanRevision, running: Mapping[int, RunningPhase], now: datetime
    ) -> None:
        """Carry a revision out; one that was taken before changes nothing."""
        if revision.number <= self.number:
            return
        self.number = revision.number
        for name in revision.drop:
            self._change(name, None, running, now)
        for put in revision.put:
            self._change(put.spec.name, put, running, now)

    def ended(self, name: str) -> bool:
        """A phase is over: whether something else takes its place, so that what it left counts for
        nothing."""
        if name not in self._next:
            return False
        self._apply(name, self._next.pop(name))
        return True

    def forget_old(self, running: Iterable[int], now: datetime) -> bool:
        """Drop the phases that ended long ago; whether there were any."""
        at_work = set(running)
        old = [
            index
            for index in standing.over(self._board.phases, now)
            if self._board.numbers[index] not in at_work
        ]
        for index in reversed(old):
            self._board.drop(index)
        return bool(old)

    def until_old(self, running: Iterable[int], now: datetime) -> timedelta | None:
        """How long until ``forget_old`` has something to drop; None while nothing is complete."""
        at_work = set(running)
        resting = [
            phase
            for number, phase in zip(self._board.numbers, self._board.phases, strict=True)
            if number not in at_work
        ]
        moment = standing.next_over(resting)
        return None if moment is None else moment - now

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The phases that are not complete, those that are about to begin with them."""
        names = [phase.spec.name for phase in self._board.phases if not phase.complete]
        names += [name for name, put in self._next.items() if put is not None]
        return tuple(dict.fromkeys(names))

    def _change(
        self,
        name: str,
        put: PhasePut | None,
        running: Mapping[int, RunningPhase],
        now: datetime,
    ) -> None:
        index = self._board.named(name)
        phase = None if index is None else running.get(self._board.numbers[index])
        if phase is None:
            self._apply(name, put)
        else:
            self._next[name] = put
            phase.let_go(now, gives_back=True)

    def _apply(self, name: str, put: PhasePut | None) -> None:
        if put is None:
            index = self._board.named(name)
            if index is not None:
                self._board.drop(index)
        elif problems := self._problems(put.spec):
            self._board.put(standing.refused(put.spec, problems), PhaseState())
        else:
            self._board.put(put.spec, put.state)
