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
        message=state.reason,
        attempt=state.attempt,
        forced=state.forced,
        started=state.started,
        finished=state.finished,
        errors=state.all_errors,
    )


def phase_view(board: PhaseBoard, plan_id: str) -> PhaseView:
    name = board.spec.name
    return PhaseView(
        id=element_id(plan_id, name),
        name=name,
        strategy=label(board.spec.strategy),
        status=board.status,
        started=board.started,
        finished=board.finished,
        steps=tuple(
            step_view(spec, state, element_id(plan_id, name, spec.name))
            for spec, state in zip(board.spec.steps, board.steps, strict=True)
        ),
    )


def plan_view(
    board: PlanBoard,
    plan_id: str,
    *,
    service: str = "",
    arguments: Mapping[str, str],
    started: datetime | None,
) -> PlanView:
    finished = [phase.finished for phase in board.phases if phase.finished]
    return PlanView(
        id=plan_id,
        name=board.spec.name,
        service=service,
        strategy=label(board.spec.strategy),
        status=board.status,
        parameters=dict(arguments),
        errors=board.errors,
        waiting=board.waits(),
        started=started,
        finished=max(finished, default=None) if board.complete else None,
        phases=tuple(phase_view(phase, plan_id) for phase in board.phases),
    )


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
