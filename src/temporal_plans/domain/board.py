"""The state of a plan's tree, and what is read off it: statuses, candidates, errors.

A PlanBoard holds PhaseBoards, a PhaseBoard its steps' states. The Phase workflow owns its board;
the Plan's board of a running phase mirrors it. A board decides nothing by itself: commands are in
``domain.commands``, a step's own changes in ``domain.transitions``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from uuid import NAMESPACE_URL, uuid5

from temporal_plans.domain import selection
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.selection import Strategies, StrategyFailed, UnknownStrategy
from temporal_plans.domain.status import Status, aggregate
from temporal_plans.domain.strategies import BUILT_IN, Element
from temporal_plans.domain.transitions import StepState, failed


class PhaseState(CompactValue):
    """A phase's state as it is carried. ``steps`` by index; a missing one is as new.

    ``gate``: a closed gate of a plan-level canary. ``canary``: indexes of the steps that were made
    gates; None before that was decided.
    """

    interrupted: bool = False
    gate: bool = False
    canary: tuple[int, ...] | None = None
    steps: dict[int, StepState] = {}


class PlanState(CompactValue):
    """A plan's state as it is carried from run to run."""

    interrupted: bool = False
    canary: tuple[int, ...] | None = None
    phases: dict[int, PhaseState] = {}


@lru_cache(maxsize=65536)
def element_id(*path: str) -> str:
    """A stable id for an element: the same for the same plan id and names, whatever restarts."""
    return str(uuid5(NAMESPACE_URL, "temporal-plans:" + "/".join(path)))


class PhaseBoard:
    """One phase: its steps' states and what follows from them. ``delayed`` are the indexes of the
    steps that have a back-off to wait for."""

    def __init__(
        self,
        spec: PhaseSpec,
        state: PhaseState | None = None,
        *,
        seed: int = 0,
        strategies: Strategies = BUILT_IN,
    ) -> None:
        state = state or PhaseState()
        self.spec = spec
        self.interrupted = state.interrupted
        self.gate = state.gate
        self._seed = seed
        self._strategies = strategies
        self.steps = [
            state.steps[i] if i in state.steps else _new_step(step.errors)
            for i, step in enumerate(spec.steps)
        ]
        self.canary = (
            self._first_gates() if state.canary is None else _within(state.canary, self.steps)
        )
        self._elements = [self._element(i) for i in range(len(self.steps))]
        self._statuses = Counter(element.status for element in self._elements)
        self._touched = sum(step.touched for step in self.steps)
        self.delayed = {i for i, step in enumerate(self.steps) if step.delayed_until is not None}
        self._candidates: list[int] | None = None
        self._status: Status | None = None

    def _first_gates(self) -> tuple[int, ...]:
        gates = selection.gates(self.spec.strategy, [step.shown for step in self.steps])
        for index in gates:
            self.steps[index] = self.steps[index].but(interrupted=True)
        return gates

    @property
    def state(self) -> PhaseState:
        """What must be carried so that a new board reads the same."""
        fresh = {i: _new_step(step.errors) for i, step in enumerate(self.spec.steps)}
        return PhaseState(
            interrupted=self.interrupted,
            gate=self.gate,
            canary=self.canary,
            steps={
                i: step
                for i, step in enumerate(self.steps)
                if step is not fresh[i] and step != fresh[i]
            },
        )

    def set(self, index: int, state: StepState) -> bool:
        """Put a step's new state; whether it differs from the one before."""
        if self.steps[index] == state:
            return False
        old = self._elements[index].status
        self._touched += state.touched - self.steps[index].touched
        self.steps[index] = state
        (self.delayed.discard if state.delayed_until is None else self.delayed.add)(index)
        self._elements[index] = self._element(index)
        self._statuses[old] -= 1
        self._statuses[self._elements[index].status] += 1
        self._changed()
        return True

    def fail(self, reason: str) -> None:
        """The phase's work ended by itself: what was begun failed, or else all the rest."""
        left = [i for i, step in enumerate(self.steps) if not step.complete]
        for index in [i for i in left if self.steps[i].begun] or left:
            self.set(index, failed(self.steps[index], reason))

    def set_interrupted(self, interrupted: bool) -> None:
        self.interrupted = interrupted
        self._changed()

    def set_gate(self, gate: bool) -> None:
        self.gate = gate
        self._changed()

    def _changed(self) -> None:
        self._candidates = None
        self._status = None

    def candidates(self) -> list[int]:
        """Indexes of the steps that may be worked on now, assets aside.

        Raises StrategyFailed, UnknownStrategy.
        """
        if self._candidates is None:
            self._candidates = self._choose()
        return list(self._candidates)

    def shown_candidates(self) -> list[int]:
        """The same for what is shown: all that it could pick of a strategy that can't answer."""
        try:
            return self.candidates()
        except (StrategyFailed, UnknownStrategy):
            return [element.index for element in self._elements if element.eligible]

    def _choose(self) -> list[int]:
        chosen = selection.candidates(
            self._elements,
            self.spec.strategy,
            self.canary,
            interrupted=self.interrupted,
            seed=self._seed,
            strategies=self._strategies,
        )
        return [element.index for element in chosen]

    def launched(self) -> list[int]:
        """Steps whose tasks were launched and are followed, whoever may begin anything now."""
        under_way = (Status.STARTING, Status.STARTED)
        return [i for i, s in enumerate(self.steps) if s.tasks and s.status in under_way]

    @property
    def is_interrupted(self) -> bool:
        return self.gate or selection.is_interrupted(self._elements, self.canary, self.interrupted)

    @property
    def closed_gate(self) -> int | None:
        """The step whose gate the next continue opens."""
        return selection.next_gate(self._elements, self.canary)

    @property
    def status(self) -> Status:
        if self._status is None:
            self._status = aggregate(
                (status for status, count in self._statuses.items() if count),
                (self._elements[i].status for i in self.shown_candidates()),
                interrupted=self.is_interrupted,
            )
        return self._status

    @property
    def begun(self) -> bool:
        """Worked on and not complete; steps that were complete from the start don't count."""
        return self._touched > 0 and not self.complete

    @property
    def errors(self) -> tuple[str, ...]:
        """The error texts of all steps, each led by the step's name."""
        return tuple(
            f"{spec.name}: {error}"
            for spec, step in zip(self.spec.steps, self.steps, strict=True)
            if step.status is Status.ERROR
            for error in step.all_errors
        )

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE

    @property
    def started(self) -> datetime | None:
        return min((s.started for s in self.steps if s.started), default=None)

    @property
    def finished(self) -> datetime | None:
        if not self.complete:
            return None
        return max((s.finished for s in self.steps if s.finished), default=None)

    def waits(self) -> str:
        """In words, what this phase waits for from an operator; empty when for nothing."""
        name = self.spec.name
        if self.complete:
            return ""
        if self.interrupted:
            return f"phase {name} is interrupted"
        if self.gate:
            return f"phase {name} waits at a canary gate of the plan"
        if (index := self.closed_gate) is not None and self.is_interrupted:
            return f"phase {name} waits at the canary gate before {self.spec.steps[index].name}"
        approvals = [self.spec.steps[i].name for i in self.approvals()]
        return f"phase {name} waits for approval of {', '.join(approvals)}" if approvals else ""

    def approvals(self) -> list[int]:
        """Steps that wait for somebody's continue."""
        return [
            i
            for i, step in enumerate(self.steps)
            if step.shown is Status.WAITING
            and self.spec.steps[i].work.kind == "approval"
            and not self._elements[i].gate
        ]

    def _element(self, index: int) -> Element:
        state, spec = self.steps[index], self.spec.steps[index]
        return Element(
            index=index,
            name=spec.name,
            status=state.shown,
            eligible=not state.complete
            and not state.interrupted
            and state.status is not Status.ERROR,
            begun=state.begun,
            gate=index in self.canary and state.shown is Status.WAITING and not state.begun,
            depends_on=spec.depends_on,
        )


class PlanBoard:
    """A whole plan: its phases and what follows from them.

    ``faults`` are errors of the plan itself: it reads ERROR, and is worked on nevertheless.
    ``standing``: phases come and go, and being complete is not its end (``put``, ``drop``).

    Beside its place among the others, which changes when one is dropped, every phase has a number
    that is never given again while this board lives.
    """

    def __init__(
        self,
        spec: PlanSpec,
        state: PlanState | None = None,
        *,
        seed: int = 0,
        strategies: Strategies = BUILT_IN,
        faults: tuple[str, ...] = (),
        standing: bool = False,
    ) -> None:
        state = state or PlanState()
        self.spec = spec
        self.faults = faults
        self.standing = standing
        self.interrupted = state.interrupted
        self._seed = seed
        self._strategies = strategies
        self.phases = [
            PhaseBoard(phase, state.phases.get(i), seed=seed, strategies=strategies)
            for i, phase in enumerate(spec.phases)
        ]
        self.numbers = list(range(len(self.phases)))
        self._next_number = len(self.phases)
        self.canary = (
            self._first_gates() if state.canary is None else _within(state.canary, self.phases)
        )

    def _first_gates(self) -> tuple[int, ...]:
        fresh = [_as_new(phase) for phase in self.phases]
        gates = selection.gates(self.spec.strategy, fresh)
        for index in gates:
            self.phases[index].set_gate(True)
        return gates

    @property
    def state(self) -> PlanState:
        return PlanState(
            interrupted=self.interrupted,
            canary=self.canary,
            phases={i: phase.state for i, phase in enumerate(self.phases)},
        )

    def take(self, index: int, state: PhaseState) -> None:
        """Put what a phase's run left behind in place of the mirror of it."""
        self.phases[index] = PhaseBoard(
            self.spec.phases[index], state, seed=self._seed, strategies=self._strategies
        )

    def of_number(self, number: int) -> PhaseBoard:
        """The phase of this number; ValueError when it is no longer there."""
        return self.phases[self.numbers.index(number)]

    def named(self, name: str) -> int | None:
        """The index of the phase of this name."""
        return next((i for i, phase in enumerate(self.phases) if phase.spec.name == name), None)

    def put(self, spec: PhaseSpec, state: PhaseState) -> None:
        """Add a phase, or put it in the place of the one of its name, under a new number."""
        board = PhaseBoard(spec, state, seed=self._seed, strategies=self._strategies)
        index = self.named(spec.name)
        if index is None:
            self.phases.append(board)
            self.numbers.append(self._next_number)
        else:
            self.phases[index], self.numbers[index] = board, self._next_number
        self._next_number += 1
        self._phases_changed()

    def drop(self, index: int) -> None:
        """Forget a phase; those behind it move up."""
        del self.phases[index]
        del self.numbers[index]
        self.canary = tuple(i - (i > index) for i in self.canary if i != index)
        self._phases_changed()

    def _phases_changed(self) -> None:
        self.spec = self.spec.but(phases=tuple(phase.spec for phase in self.phases))

    def candidates(self) -> list[int]:
        """Indexes of the phases that may be worked on now. Raises as those of a phase do."""
        return [element.index for element in self._choose(self._elements())]

    def _choose(self, elements: Sequence[Element]) -> list[Element]:
        return selection.candidates(
            elements,
            self.spec.strategy,
            self.canary,
            interrupted=self.interrupted,
            seed=self._seed,
            strategies=self._strategies,
        )

    def _shown_candidates(self, elements: Sequence[Element]) -> list[Element]:
        try:
            return self._choose(elements)
        except (StrategyFailed, UnknownStrategy):
            return [element for element in elements if element.eligible]

    def permitted(self) -> set[int]:
        """The phases that the plan itself does not hold back, whatever they wait for on their own.

        A phase that is interrupted or at a gate is no candidate; yet once somebody continues it, it
        need not ask the plan again.
        """
        elements = [
            replace(e, eligible=e.eligible or self._waits_alone(phase))
            for e, phase in zip(self._elements(), self.phases, strict=True)
        ]
        return {element.index for element in self._choose(elements)}

    @staticmethod
    def _waits_alone(phase: PhaseBoard) -> bool:
        return (
            phase.is_interrupted
            and not phase.gate
            and not phase.complete
            and phase.status is not Status.ERROR
        )

    @property
    def is_interrupted(self) -> bool:
        return selection.is_interrupted(self._elements(), self.canary, self.interrupted)

    @property
    def closed_gate(self) -> int | None:
        return selection.next_gate(self._elements(), self.canary)

    @property
    def status(self) -> Status:
        elements = self._elements()
        return aggregate(
            (element.status for element in elements),
            (element.status for element in self._shown_candidates(elements)),
            errors=bool(self.faults),
            interrupted=selection.is_interrupted(elements, self.canary, self.interrupted),
        )

    @property
    def errors(self) -> tuple[str, ...]:
        """The plan's own, then those of all steps, led by their phase's name."""
        children = (f"{p.spec.name}: {error}" for p in self.phases for error in p.errors)
        return (*self.faults, *children)

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE

    @property
    def forced(self) -> tuple[str, ...]:
        """The steps that somebody forced to complete, as ``phase/step``."""
        return tuple(
            f"{phase.spec.name}/{spec.name}"
            for phase in self.phases
            for spec, state in zip(phase.spec.steps, phase.steps, strict=True)
            if state.forced
        )

    def waits(self) -> tuple[str, ...]:
        """In words, what the plan waits for from an operator."""
        if self.complete and not self.standing:
            return ()
        own: Sequence[str] = ("the plan is interrupted",) if self.interrupted else ()
        return (*own, *(text for phase in self.phases if (text := phase.waits())))

    def _elements(self) -> list[Element]:
        return [
            Element(
                index=i,
                name=phase.spec.name,
                status=phase.status,
                eligible=not phase.complete
                and phase.status is not Status.ERROR
                and not phase.is_interrupted,
                begun=phase.begun,
                gate=phase.gate and not phase.complete,
                depends_on=phase.spec.depends_on,
            )
            for i, phase in enumerate(self.phases)
        ]


def _as_new(phase: PhaseBoard) -> Status:
    """A phase of a new plan, of which some steps may need nothing done: its strategy is not asked,
    for nobody has checked yet that it is known."""
    if phase.errors:
        return Status.ERROR
    return Status.COMPLETE if all(step.complete for step in phase.steps) else Status.PENDING


_FRESH = StepState()


def _within(indexes: tuple[int, ...], children: Sequence[object]) -> tuple[int, ...]:
    """Carried indexes that there are: a plan's input may have been written by hand."""
    return tuple(index for index in indexes if 0 <= index < len(children))


def _new_step(errors: tuple[str, ...]) -> StepState:
    return StepState(status=Status.ERROR, errors=errors) if errors else _FRESH
