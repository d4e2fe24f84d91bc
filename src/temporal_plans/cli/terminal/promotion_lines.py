"""Lines for decisions about promotions."""

from collections.abc import Iterator

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.cli.terminal.fleet_lines import time_text
from temporal_plans.domain.fleets.decisions import VerdictState
from temporal_plans.domain.fleets.promotion.decisions import (
    ProductDecision,
    PromotionDecision,
    PromotionOutcome,
)

_STYLES = {
    PromotionOutcome.PROMOTE: "green",
    PromotionOutcome.RECALL: "bold red",
    PromotionOutcome.CANCEL: "magenta",
    PromotionOutcome.EVALUATING: "yellow",
    PromotionOutcome.PAUSED: "dim",
    PromotionOutcome.CANCELLED: "dim",
    PromotionOutcome.RECALLED: "dim",
}
_HEAD = ("RELEASE", "FROM", "TO", "OUTCOME", "AGAIN", "WHY")


def promotion_lines(answer: ProductDecision) -> Iterator[str | Text]:
    """Yield the decisions about the releases of a product: a heading, and a row for each release in
    a stage."""
    again = f", decides again {time_text(answer.next_wakeup)}" if answer.next_wakeup else ""
    yield Text(f"{answer.product} at {time_text(answer.at)}{again}", style="bold")
    if answer.tests:
        names = ", ".join(f"{one.environment}/{one.entity}" for one in answer.tests)
        yield f"under test: {names}"
    if not answer.promotions:
        yield "no releases to promote"
        return
    yield from columns(_HEAD, [_row(one) for one in answer.promotions])


def _row(decision: PromotionDecision) -> tuple[Cell, ...]:
    return (
        decision.version,
        decision.source,
        decision.target,
        Text(decision.outcome, style=_STYLES[decision.outcome]),
        time_text(decision.next_evaluation_at) if decision.next_evaluation_at else "",
        "; ".join(_reasons(decision)),
    )


def _reasons(decision: PromotionDecision) -> Iterator[str]:
    """Yield why a release is not promoted: every condition that does not hold."""
    failed = [one for one in decision.conditions if one.state is VerdictState.FAILED]
    if decision.code not in {one.code for one in failed} and decision.code:
        yield f"{decision.code}: {decision.message}"
    for one in failed:
        yield f"{one.code}: {one.message}"
