"""Lines for decisions about promotions."""

from collections.abc import Iterator

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.fleet_lines import time_text
from temporal_plans.domain.fleets.decisions import VerdictState
from temporal_plans.domain.fleets.promotion.canary_standing import CanaryStanding
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.decisions import (
    ProductDecision,
    PromotionDecision,
    PromotionOutcome,
)
from temporal_plans.messages.fleets.product_views import ProductView
from temporal_plans.messages.promotions import ReleaseExplanation, StageExplanation

_STYLES = {
    PromotionOutcome.PROMOTE: "green",
    PromotionOutcome.RECALL: "bold red",
    PromotionOutcome.CANCEL: "magenta",
    PromotionOutcome.EVALUATING: "yellow",
    PromotionOutcome.PAUSED: "dim",
    PromotionOutcome.CANCELLED: "dim",
    PromotionOutcome.RECALLED: "dim",
}
_OVER = frozenset({PromotionOutcome.CANCELLED, PromotionOutcome.RECALLED})
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


def stage_lines(product: ProductView) -> Iterator[str | Text]:
    """Yield a table of the releases in the stages of a pipeline that they have not passed, of which
    something is to be expected, then what stands beside it."""
    rows = [_row(one) for one in product.promotions if one.outcome not in _OVER]
    if rows:
        yield ""
        yield from columns(_HEAD, rows)
    elif product.pipeline is not None:
        yield "no release waits in a stage of the pipeline"
    if product.tests:
        names = ", ".join(f"{one.environment}/{one.entity}" for one in product.tests)
        yield f"under test: {names}"
    for one in product.channels:
        yield f"channel {one.name}: {'; '.join(_rules(one))}"
    yield from product.problems


def _rules(channel: Channel) -> Iterator[str]:
    if channel.archived:
        yield "archived"
    for label, values in sorted(channel.labels.items()):
        yield f"needs {label} = {' or '.join(values)}" if values else f"needs {label}"
    if not (channel.archived or channel.labels):
        yield "no rules"


def release_explanation(found: ReleaseExplanation) -> Iterator[str | Text]:
    """Yield everything about a release in its pipeline: each stage that it has not passed, what
    every condition says, and how each canary stands."""
    release = found.release
    yield Text(f"{found.product} {release.version} at {time_text(found.at)}", style="bold")
    yield f"on {', '.join(release.channels)}"
    for recall in found.recalls:
        yield f"recalled by {recall.id}: {recall.reason or 'no reason'}"
    if not found.stages:
        yield "it waits in no stage of the pipeline"
    for stage in found.stages:
        yield from _stage(stage)


def _stage(stage: StageExplanation) -> Iterator[str | Text]:
    one = stage.decision
    code = f" ({one.code})" if one.code else ""
    yield Text(
        f"from {one.source} to {one.target}: {one.outcome}{code}", style=_STYLES[one.outcome]
    )
    if one.message:
        yield f"  {one.message}"
    for verdict in one.conditions:
        message = f" {verdict.code}: {verdict.message}" if verdict.code else ""
        yield f"  {verdict.id:8} {verdict.state:6} {verdict.title}{message}"
        yield from (f"           to do: {action}" for action in verdict.actions)
    for canary in stage.canaries:
        yield f"  {canary.environment}/{canary.entity}: {_canary(canary, one.version)}"
    if one.next_evaluation_at is not None:
        yield f"  looked at again: {time_text(one.next_evaluation_at)}"


def _canary(canary: CanaryStanding, version: str) -> str:
    if canary.version != version:
        return f"has {canary.version or 'nothing'}"
    if canary.since is None:
        return f"has it, it is not known since when, {canary.condition}"
    text = f"has it since {time_text(canary.since)}, {canary.condition}"
    if canary.unhealthy:
        return f"{text}: in error for too long"
    if canary.healthy:
        return f"{text}: has soaked"
    left = f"soaks for {duration(canary.left)} more" if canary.left else "was not healthy enough"
    return f"{text}: {left}"


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
