"""Boards of plans, and commands to them, carried out as a plan's workflow would."""

from builders.clock import NOW
from builders.plans import plan_spec
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.commands import (
    Command,
    Decision,
    Outcome,
    Verb,
    apply_order,
    apply_plan,
    decide,
)
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def board_of(*phases: PhaseSpec, strategy: StrategySpec | str = "serial") -> PlanBoard:
    """The board of a plan deploy of these phases."""
    return PlanBoard(plan_spec(*phases, strategy=strategy))


def tell(board: PlanBoard, verb: Verb, phase: str = "", step: str = "") -> Outcome:
    """The answer, with the command carried out."""
    decision = decide(board, f"svc/{board.spec.name}", verb, Command(phase=phase, step=step))
    carry_out(board, decision)
    return decision.outcome


def carry_out(board: PlanBoard, decision: Decision) -> None:
    apply_plan(board, decision)
    for order in decision.orders:
        apply_order(board.phases[order.phase], order, NOW)
