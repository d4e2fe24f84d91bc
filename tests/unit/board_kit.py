"""Commands to the board of a plan, carried out as its workflow would."""

from datetime import UTC, datetime

from temporal_plans.domain.board import PlanBoard
from temporal_plans.domain.commands import (
    Command,
    Decision,
    Outcome,
    Verb,
    apply_order,
    apply_plan,
    decide,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def tell(board: PlanBoard, verb: Verb, phase: str = "", step: str = "") -> Outcome:
    """The answer, with the command carried out."""
    decision = decide(board, f"svc/{board.spec.name}", verb, Command(phase=phase, step=step))
    carry_out(board, decision)
    return decision.outcome


def carry_out(board: PlanBoard, decision: Decision) -> None:
    apply_plan(board, decision)
    for order in decision.orders:
        apply_order(board.phases[order.phase], order, NOW)
