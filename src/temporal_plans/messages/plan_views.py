"""Views of a plan, for the query ``status`` and for Temporal's own UI."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from temporal_plans.domain.plans.board import PhaseBoard, PlanBoard, element_id
from temporal_plans.domain.plans.plan import StepSpec
from temporal_plans.domain.plans.selection import label
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.values.compressed import TEXT_LIMITS, CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shortened

ERRORS_SHOWN = 100
"""Errors of its own that a view keeps when it would else not fit into an answer."""


class StepView(CompactValue):
    """A step as clients see it.

    ``message`` is the reason why the step makes no progress, if it makes none. ``task`` is the id
    of the newest task of a step that runs a command; its output can be read. ``display`` is what
    people read in place of the status: PAUSED or PAUSING for a paused pod, which the client adds.
    """

    id: str
    name: str
    kind: str
    status: Status
    message: str = ""
    attempt: int = 0
    forced: bool = False
    started: datetime | None = None
    finished: datetime | None = None
    errors: tuple[str, ...] = ()
    task: str = ""
    display: str = ""

    @property
    def shown(self) -> str:
        """The status that people read."""
        return self.display or str(self.status)

    def with_texts_of(self, limit: int) -> "StepView":
        """Return the view with its texts cut to ``limit`` characters."""
        errors = tuple(shortened(error, max(limit, 20)) for error in self.errors)
        return self.but(message=shortened(self.message, limit), errors=errors)


class PhaseView(CompressibleValue):
    """A phase as clients see it, with its steps in order."""

    id: str
    name: str
    strategy: str
    status: Status
    started: datetime | None = None
    finished: datetime | None = None
    steps: tuple[StepView, ...] = ()

    def with_texts_of(self, limit: int) -> "PhaseView":
        """Return the view with the texts of its steps cut to ``limit`` characters."""
        return self.but(steps=tuple(step.with_texts_of(limit) for step in self.steps))

    def shorter_forms(self) -> Iterator["PhaseView"]:
        for limit in TEXT_LIMITS:
            yield self.with_texts_of(limit)


class PlanView(CompressibleValue):
    """Answer of the Plan's query ``status``: the whole tree. ``waiting`` names the elements that
    wait for an operator; ``halted`` is why nothing more begins, where the plan stops on errors;
    ``reentrant`` as in PlanSpec."""

    id: str
    name: str
    service: str = ""
    strategy: str
    status: Status
    parameters: dict[str, str] = {}
    errors: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    halted: str = ""
    reentrant: bool = True
    started: datetime | None = None
    finished: datetime | None = None
    phases: tuple[PhaseView, ...] = ()

    def with_texts_of(self, limit: int) -> "PlanView":
        """Return the view with the texts of its steps cut to ``limit`` characters, and no more than
        the first ``ERRORS_SHOWN`` errors, which its steps have as well."""
        return self.but(
            errors=tuple(shortened(error, 200) for error in self.errors[:ERRORS_SHOWN]),
            waiting=self.waiting[:ERRORS_SHOWN],
            phases=tuple(phase.with_texts_of(limit) for phase in self.phases),
        )

    def shorter_forms(self) -> Iterator["PlanView"]:
        for limit in TEXT_LIMITS:
            yield self.with_texts_of(limit)


def step_view(spec: StepSpec, state: StepState, step_id: str) -> StepView:
    """Return the view of one step."""
    return StepView(
        id=step_id,
        name=spec.name,
        kind=spec.work.kind,
        status=state.shown,
        message=state.reason or state.failure,
        attempt=state.attempt,
        forced=state.forced,
        started=state.started,
        finished=state.finished,
        errors=state.all_errors,
        task=str(state.result or "") if spec.work.runs_a_task else "",
    )


class PlanViewer:
    """Makes views of a plan's boards, and caches those of unchanged steps: a plan may have
    thousands of steps, is queried often, and changes little between two queries."""

    def __init__(self, plan_id: str) -> None:
        self._plan_id = plan_id
        self._steps: dict[tuple[str, str], tuple[StepState, StepView]] = {}

    def plan(
        self,
        board: PlanBoard,
        *,
        service: str = "",
        arguments: Mapping[str, str],
        started: datetime | None,
    ) -> PlanView:
        """Return the view of the whole plan."""
        finished = [phase.finished for phase in board.phases if phase.finished]
        return PlanView(
            id=self._plan_id,
            name=board.spec.name,
            service=service,
            strategy=label(board.spec.strategy),
            status=board.status,
            parameters=dict(arguments),
            errors=board.errors,
            waiting=board.waits(),
            halted=board.halt_reason,
            reentrant=board.spec.reentrant,
            started=started,
            finished=max(finished, default=None) if board.complete else None,
            phases=tuple(self.phase(phase) for phase in board.phases),
        )

    def phase(self, board: PhaseBoard) -> PhaseView:
        """Return the view of one phase."""
        name = board.spec.name
        return PhaseView(
            id=element_id(self._plan_id, name),
            name=name,
            strategy=label(board.spec.strategy),
            status=board.status,
            started=board.started,
            finished=board.finished,
            steps=tuple(
                self._step(name, spec, state)
                for spec, state in zip(board.spec.steps, board.steps, strict=True)
            ),
        )

    def _step(self, phase: str, spec: StepSpec, state: StepState) -> StepView:
        cached = self._steps.get((phase, spec.name))
        if cached is not None and cached[0] is state:
            return cached[1]
        view = step_view(spec, state, element_id(self._plan_id, phase, spec.name))
        self._steps[phase, spec.name] = state, view
        return view


def details(board: PlanBoard) -> str:
    """Return a summary of the tree as markdown, for Temporal's own UI and CLI."""
    rows = [
        f"| {phase.spec.name} | {label(phase.spec.strategy)} | {phase.status} "
        f"| {sum(step.complete for step in phase.steps)}/{len(phase.steps)} |"
        for phase in board.phases[:50]
    ]
    more = [f"\n… and {len(board.phases) - 50} more phases"] if len(board.phases) > 50 else []
    waits = [f"\nWaiting: {text}" for text in board.waits()]
    if board.halted:
        waits.append(f"\nHalted: {board.halt_reason}")
    return "\n".join(
        [
            f"**{board.spec.name}** ({label(board.spec.strategy)}): **{board.status}**",
            "",
            "| phase | strategy | status | steps |",
            "|---|---|---|---|",
            *rows,
            *more,
            *waits,
        ]
    )
