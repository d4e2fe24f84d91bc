"""The state of a plan's tree, and what is computed from it: statuses, candidates, errors.

A PlanBoard holds PhaseBoards, a PhaseBoard its steps' states. The Phase workflow owns its board;
the Plan's board of a running phase mirrors it. A board decides nothing by itself: commands are in
``domain.plans.commands``, a step's own changes in ``domain.plans.transitions``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from uuid import NAMESPACE_URL, uuid5

from temporal_plans.domain.plans import selection
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.selection import Strategies, StrategyFailed, UnknownStrategy
from temporal_plans.domain.plans.status import Status, aggregate
from temporal_plans.domain.plans.strategies import BUILT_IN
from temporal_plans.domain.plans.strategies.record import Element
from temporal_plans.domain.plans.transitions import StepState, failed, halted, resumed
from temporal_plans.domain.values.model import CompactValue


class PhaseState(CompactValue):
    """A phase's state as it is carried from run to run. ``steps`` by index; a missing step is new.

    ``gate``: a closed gate of a plan-level canary. ``canary``: indexes of the steps that are gates;
    None before that was decided.
    """

    interrupted: bool = False
    gate: bool = False
    canary: tuple[int, ...] | None = None
    steps: dict[int, StepState] = {}

    def with_texts_of(self, limit: int) -> "PhaseState":
        """Return the state with the texts of its steps cut to ``limit`` characters."""
        steps = {index: step.with_texts_of(limit) for index, step in self.steps.items()}
        return self.but(steps=steps)


class PlanState(CompactValue):
    """A plan's state as it is carried from run to run."""

    interrupted: bool = False
    canary: tuple[int, ...] | None = None
    phases: dict[int, PhaseState] = {}

    def with_texts_of(self, limit: int) -> "PlanState":
        """Return the state with the texts of its steps cut to ``limit`` characters."""
        phases = {index: phase.with_texts_of(limit) for index, phase in self.phases.items()}
        return self.but(phases=phases)


@lru_cache(maxsize=65536)
def element_id(*path: str) -> str:
    """Return the stable id of an element, derived from the plan id and the names of the path."""
    return str(uuid5(NAMESPACE_URL, "temporal-plans:" + "/".join(path)))


class PhaseBoard:
    """One phase: its steps' states and what is computed from them. ``delayed`` are the indexes of
    the steps that wait for the end of a back-off. ``stops_on_error``: while a step is in ERROR, no
    other may be worked on (``on_error`` of the plan)."""

    def __init__(
        self,
        spec: PhaseSpec,
        state: PhaseState | None = None,
        *,
        seed: int = 0,
        strategies: Strategies = BUILT_IN,
        stops_on_error: bool = False,
    ) -> None:
        state = state or PhaseState()
        self.spec = spec
        self._stops_on_error = stops_on_error
        self.interrupted = state.interrupted
        self.gate = state.gate
        self._seed = seed
        self._strategies = strategies
        self.steps = [
            state.steps[i] if i in state.steps else _new_step(step.errors)
            for i, step in enumerate(spec.steps)
        ]
        self._groups = _pods(spec) if spec.strategy.gates == "pods" else ()
        self.canary = (
            self._first_gates() if state.canary is None else _within(state.canary, self.steps)
        )
        self._elements = [self._element(i) for i in range(len(self.steps))]
        self._statuses = Counter(element.status for element in self._elements)
        self._touched = sum(step.touched for step in self.steps)
        self._at_work = sum(step.at_work for step in self.steps)
        self.delayed = {i for i, step in enumerate(self.steps) if step.delayed_until is not None}
        self._launched = {i for i, one in enumerate(self.steps) if _is_launched(one)}
        self._waiting = {i for i, one in enumerate(self._elements) if _waits(one)}
        self._halted_steps = {i for i, one in enumerate(self.steps) if _is_halted(one)}
        self._candidates: list[int] | None = None
        self._status: Status | None = None

    def _first_gates(self) -> tuple[int, ...]:
        statuses = [step.shown for step in self.steps]
        gates = selection.gates(self.spec.strategy, statuses, self._groups)
        for index in gates:
            self.steps[index] = self.steps[index].but(interrupted=True)
        return gates

    @property
    def state(self) -> PhaseState:
        """The state from which a new board is equal to this one."""
        new = {i: _new_step(step.errors) for i, step in enumerate(self.spec.steps)}
        return PhaseState(
            interrupted=self.interrupted,
            gate=self.gate,
            canary=self.canary,
            steps={
                i: step
                for i, step in enumerate(self.steps)
                if step is not new[i] and step != new[i]
            },
        )

    def set(self, index: int, state: StepState) -> bool:
        """Put a step's new state; return whether it differs from the old one."""
        if self.steps[index] == state:
            return False
        old = self._elements[index].status
        self._touched += state.touched - self.steps[index].touched
        self._at_work += state.at_work - self.steps[index].at_work
        self.steps[index] = state
        (self.delayed.discard if state.delayed_until is None else self.delayed.add)(index)
        self._elements[index] = self._element(index)
        self._statuses[old] -= 1
        self._statuses[self._elements[index].status] += 1
        (self._launched.add if _is_launched(state) else self._launched.discard)(index)
        (self._halted_steps.add if _is_halted(state) else self._halted_steps.discard)(index)
        (self._waiting.add if _waits(self._elements[index]) else self._waiting.discard)(index)
        self._changed()
        return True

    def fail(self, reason: str, trace: str = "") -> None:
        """Fail the steps that were begun, or else all the rest: the phase's work ended by
        itself."""
        left = [i for i, step in enumerate(self.steps) if not step.complete]
        for index in [i for i in left if self.steps[i].begun] or left:
            self.set(index, failed(self.steps[index], reason, trace))

    @property
    def halted(self) -> bool:
        """Whether a step in ERROR stops the phase, and with it the plan."""
        return self._stops_on_error and self._statuses[Status.ERROR] > 0

    @property
    def halt_reason(self) -> str:
        """Why steps are halted, in words; empty when they are not."""
        if not self.halted:
            return ""
        failed = next(i for i, step in enumerate(self.steps) if step.status is Status.ERROR)
        return f"step {self.spec.steps[failed].name} of phase {self.spec.name} is in error"

    def halt(self, reason: str) -> list[int]:
        """Reset the steps at work; return their indexes."""
        if not self._at_work:
            return []
        text = f"halted: {reason}"
        return [i for i, step in enumerate(self.steps) if self.set(i, halted(step, text))]

    def resume(self) -> list[int]:
        """Clear the reason of halted steps, which may begin again; return their indexes."""
        if not self._halted_steps:
            return []
        return [i for i in sorted(self._halted_steps) if self.set(i, resumed(self.steps[i]))]

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
        """Return the indexes of the steps that may be worked on now, assets aside.

        Raises StrategyFailed, UnknownStrategy.
        """
        if self._candidates is None:
            self._candidates = self._choose()
        return list(self._candidates)

    def shown_candidates(self) -> list[int]:
        """Return the same for views; all eligible steps when the strategy fails or is unknown."""
        try:
            return self.candidates()
        except (StrategyFailed, UnknownStrategy):
            return [element.index for element in self._elements if element.eligible]

    @property
    def touched(self) -> bool:
        """Whether a step was worked on in this run of the plan."""
        return self._touched > 0

    @property
    def untouched(self) -> bool:
        """Whether every step is as if the plan had never begun."""
        return self._touched == 0 and self._statuses[Status.COMPLETE] == 0

    @property
    def at_work(self) -> bool:
        """Whether a step is under way, or waits for its next attempt or an approval."""
        return self._at_work > 0

    def _choose(self) -> list[int]:
        if self.halted:
            return []
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
        """Return the steps whose tasks were launched and are followed, candidates or not."""
        return sorted(self._launched)

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
        """Whether it was worked on and is not complete; steps that never needed work don't
        count."""
        return self._touched > 0 and not self.complete

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of all steps, each led by the step's name."""
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
        """Return, in words, what this phase waits for from an operator; empty when for nothing."""
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
        """Return the approval steps that wait for a continue."""
        return [i for i in sorted(self._waiting) if self.spec.steps[i].work.approves]

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
            group=self._groups[index] if self._groups else "",
        )


def _pods(phase: PhaseSpec) -> tuple[str, ...]:
    """Return the pod instance of each step; empty for a step without one."""
    assets = (step.work.asset for step in phase.steps)
    return tuple(f"{asset.pod}-{asset.number}" if asset else "" for asset in assets)


class PlanBoard:
    """A whole plan: its phases and what is computed from them.

    ``faults`` are errors of the plan itself: it reads ERROR, and is worked on nevertheless.
    ``standing``: phases are added and removed, and being complete does not end it (``put``,
    ``drop``).

    Beside its index, which changes when another phase is dropped, every phase has a number that is
    never reused by this board.
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
            self._phase_board(phase, state.phases.get(i)) for i, phase in enumerate(spec.phases)
        ]
        self.numbers = list(range(len(self.phases)))
        self._next_number = len(self.phases)
        self.canary = (
            self._first_gates() if state.canary is None else _within(state.canary, self.phases)
        )

    def _phase_board(self, spec: PhaseSpec, state: PhaseState | None) -> PhaseBoard:
        return PhaseBoard(
            spec,
            state,
            seed=self._seed,
            strategies=self._strategies,
            stops_on_error=self.spec.on_error == "stop",
        )

    def _first_gates(self) -> tuple[int, ...]:
        statuses = [_initial_status(phase) for phase in self.phases]
        gates = selection.gates(self.spec.strategy, statuses)
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
        """Replace the mirror of a phase by the state that its run left."""
        self.phases[index] = self._phase_board(self.spec.phases[index], state)

    def of_number(self, number: int) -> PhaseBoard:
        """Return the phase of this number; ValueError when it was dropped."""
        return self.phases[self.numbers.index(number)]

    def named(self, name: str) -> int | None:
        """Return the index of the phase of this name; None without one."""
        return next((i for i, phase in enumerate(self.phases) if phase.spec.name == name), None)

    def put(self, spec: PhaseSpec, state: PhaseState) -> None:
        """Add a phase, or replace the phase of its name, under a new number."""
        board = self._phase_board(spec, state)
        index = self.named(spec.name)
        if index is None:
            self.phases.append(board)
            self.numbers.append(self._next_number)
        else:
            self.phases[index], self.numbers[index] = board, self._next_number
        self._next_number += 1
        self._phases_changed()

    def drop(self, index: int) -> None:
        """Remove a phase; the phases behind it move up."""
        del self.phases[index]
        del self.numbers[index]
        self.canary = tuple(i - (i > index) for i in self.canary if i != index)
        self._phases_changed()

    def _phases_changed(self) -> None:
        self.spec = self.spec.but(phases=tuple(phase.spec for phase in self.phases))

    def candidates(self) -> list[int]:
        """Return the indexes of the phases that may be worked on now.

        Raises StrategyFailed, UnknownStrategy.
        """
        return [element.index for element in self._choose(self._elements())]

    def _choose(self, elements: Sequence[Element]) -> list[Element]:
        if self.halted:
            return []
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

    @property
    def halted(self) -> bool:
        """Whether a step in ERROR stops the plan: nothing more may begin (``on_error``)."""
        return self.spec.on_error == "stop" and any(phase.halted for phase in self.phases)

    @property
    def halt_reason(self) -> str:
        """Why the plan is halted, in words; empty when it is not."""
        return next((phase.halt_reason for phase in self.phases if phase.halted), "")

    @property
    def may_have_begun(self) -> bool:
        """Whether a step was worked on in this run, or may be by now: a phase reports that later
        than its steps begin."""
        return self._lets_begin or any(phase.touched for phase in self.phases)

    @property
    def _lets_begin(self) -> bool:
        """Whether a step may begin before the next command."""
        candidates = self._shown_candidates(self._elements())
        return any(self.phases[e.index].shown_candidates() for e in candidates)

    @property
    def is_stopped(self) -> bool:
        """Whether the plan is interrupted with every step as if it had never begun: a stop leaves
        it so, an interrupt of a plan that has begun does not."""
        return self.interrupted and all(phase.untouched for phase in self.phases)

    @property
    def resting(self) -> bool:
        """Whether nothing is at work: no step is under way or waits for its next attempt or an
        approval, and none may begin before the next command."""
        return not any(phase.at_work for phase in self.phases) and not self._lets_begin

    def permitted(self) -> set[int]:
        """Return the phases that the plan itself permits, whatever they wait for on their own.

        A phase that is interrupted or at a gate is no candidate; yet once an operator continues it,
        it need not ask the plan again.
        """
        elements = [
            replace(e, eligible=e.eligible or self._waits_by_itself(phase))
            for e, phase in zip(self._elements(), self.phases, strict=True)
        ]
        return {element.index for element in self._choose(elements)}

    @staticmethod
    def _waits_by_itself(phase: PhaseBoard) -> bool:
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
        """The plan's own errors, then those of all steps, led by their phase's name."""
        children = (f"{p.spec.name}: {error}" for p in self.phases for error in p.errors)
        return (*self.faults, *children)

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE

    @property
    def forced(self) -> tuple[str, ...]:
        """The steps that an operator forced to complete, as ``phase/step``."""
        return tuple(
            f"{phase.spec.name}/{spec.name}"
            for phase in self.phases
            for spec, state in zip(phase.spec.steps, phase.steps, strict=True)
            if state.forced
        )

    def waits(self) -> tuple[str, ...]:
        """Return, in words, what the plan waits for from an operator."""
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


def _is_launched(step: StepState) -> bool:
    """Whether tasks of a step were launched that are to be followed."""
    return bool(step.tasks) and step.status in (Status.STARTING, Status.STARTED)


def _is_halted(step: StepState) -> bool:
    return step.cause is Cause.HALTED


def _waits(step: Element) -> bool:
    """Whether a step waits, and not at a canary gate."""
    return step.status is Status.WAITING and not step.gate


def _initial_status(phase: PhaseBoard) -> Status:
    """Return the status of a phase of a new plan, of which some steps may need no work. Its
    strategy is not called, for it is not checked yet."""
    if phase.errors:
        return Status.ERROR
    return Status.COMPLETE if all(step.complete for step in phase.steps) else Status.PENDING


_NEW_STEP = StepState()


def _within(indexes: tuple[int, ...], children: Sequence[object]) -> tuple[int, ...]:
    """Drop carried indexes that don't exist: a plan's input may have been written by hand."""
    return tuple(index for index in indexes if 0 <= index < len(children))


def _new_step(errors: tuple[str, ...]) -> StepState:
    return StepState(status=Status.ERROR, errors=errors) if errors else _NEW_STEP
