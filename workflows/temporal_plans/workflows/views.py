"""What people and programs read of a plan's boards."""

from collections.abc import Mapping
from datetime import datetime

from temporal_plans.domain.board import PhaseBoard, PlanBoard, element_id
from temporal_plans.domain.plan import StepSpec
from temporal_plans.domain.selection import label
from temporal_plans.domain.transitions import StepState
from temporal_plans.messages.plan import PhaseView, PlanView, StepView


def step_view(spec: StepSpec, state: StepState, step_id: str) -> StepView:
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
        task=str(state.result or "") if spec.work.kind == "command" else "",
    )


class PlanViewer:
    """Views of a plan's boards. Those of steps that did not change are kept: a plan of thousands of
    steps is looked at often and changes little between two looks."""

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
            started=started,
            finished=max(finished, default=None) if board.complete else None,
            phases=tuple(self.phase(phase) for phase in board.phases),
        )

    def phase(self, board: PhaseBoard) -> PhaseView:
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
        known = self._steps.get((phase, spec.name))
        if known is not None and known[0] is state:
            return known[1]
        view = step_view(spec, state, element_id(self._plan_id, phase, spec.name))
        self._steps[phase, spec.name] = state, view
        return view


def details(board: PlanBoard) -> str:
    """The tree in short, as markdown: what Temporal's own UI and CLI show of a plan."""
    rows = [
        f"| {phase.spec.name} | {label(phase.spec.strategy)} | {phase.status} "
        f"| {sum(step.complete for step in phase.steps)}/{len(phase.steps)} |"
        for phase in board.phases[:50]
    ]
    more = [f"\n… and {len(board.phases) - 50} more phases"] if len(board.phases) > 50 else []
    waits = [f"\nWaiting: {text}" for text in board.waits()]
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
