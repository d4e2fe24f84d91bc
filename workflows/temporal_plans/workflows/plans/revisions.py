"""Revisions of a standing plan by its service: phases to add, replace and drop."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from temporal_plans.domain.plans import standing
from temporal_plans.domain.plans.board import PhaseState, PlanBoard
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.plans import PhasePut, PlanRevision
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.running_phase import RunningPhase


class Revisions:
    """Applies revisions to the board; ``number`` is that of the last one applied.

    A running phase is ended early first, because its successor has the same workflow id; the
    successor waits until it has ended.
    """

    def __init__(
        self,
        board: PlanBoard,
        number: int,
        problems: Callable[[PhaseSpec], tuple[Reason, ...]],
    ) -> None:
        self.number = number
        self._board = board
        self._problems = problems
        self._pending: dict[str, PhasePut | None] = {}

    def take(
        self, revision: PlanRevision, running: Mapping[int, RunningPhase], now: datetime
    ) -> None:
        """Apply a revision; a revision that was applied before changes nothing."""
        if revision.number <= self.number:
            return
        self.number = revision.number
        for name in revision.drop:
            self._change(name, None, running, now)
        for put in revision.put:
            self._change(put.spec.name, put, running, now)

    def ended(self, name: str) -> bool:
        """Handle the end of a phase. Return True when a revision replaces or drops the phase, so
        that its result is ignored."""
        if name not in self._pending:
            return False
        self._apply(name, self._pending.pop(name))
        return True

    def drop_expired(self, running: Iterable[int], now: datetime) -> None:
        """Drop the phases whose time since completion has expired."""
        at_work = set(running)
        settings = engine_settings()
        expired = standing.expired(
            self._board.phases, now, limit=settings.retention_limit, time=settings.retention_time
        )
        old = [index for index in expired if self._board.numbers[index] not in at_work]
        for index in reversed(old):
            self._board.drop(index)

    def time_to_expiry(self, running: Iterable[int], now: datetime) -> timedelta | None:
        """Return the time until ``drop_expired`` drops a phase; None while no phase is complete."""
        at_work = set(running)
        resting = [
            phase
            for number, phase in zip(self._board.numbers, self._board.phases, strict=True)
            if number not in at_work
        ]
        moment = standing.next_expiry(resting, time=engine_settings().retention_time)
        return None if moment is None else moment - now

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the phases that are not complete, pending ones included."""
        names = [phase.spec.name for phase in self._board.phases if not phase.complete]
        names += [name for name, put in self._pending.items() if put is not None]
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
            self._pending[name] = put
            phase.end_early(now, return_leases=True)

    def _apply(self, name: str, put: PhasePut | None) -> None:
        if put is None:
            index = self._board.named(name)
            if index is not None:
                self._board.drop(index)
        elif problems := self._problems(put.spec):
            self._board.put(standing.with_errors(put.spec, problems), PhaseState())
        else:
            self._board.put(put.spec, put.state)
