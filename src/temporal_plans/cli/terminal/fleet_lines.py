"""Lines for decisions about fleets."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.terminal.columns import Cell, columns
from temporal_plans.domain.fleets.decisions import (
    Decision,
    FleetDecision,
    Outcome,
    PlanView,
    Verdict,
    VerdictState,
)
from temporal_plans.domain.fleets.simulation import LineKind, Simulation

STYLES = {
    Outcome.ISSUE: "green",
    Outcome.ACTIVE: "cyan",
    Outcome.BLOCKED: "yellow",
    Outcome.NO_WORK: "dim",
    Outcome.UNMANAGED: "dim",
}
_HEAD = ("ENTITY", "INSTALLED", "OUTCOME", "PLAN", "AGAIN", "WHY")
_REJECTED_SHOWN_LIMIT = 3


def decision_lines(answer: FleetDecision) -> Iterator[str | Text]:
    """Yield the decisions about an environment: a heading, and a row for each entity."""
    again = f", decides again {time_text(answer.next_wakeup)}" if answer.next_wakeup else ""
    yield Text(f"{answer.environment} at {time_text(answer.at)}{again}", style="bold")
    if answer.threshold.created is not None:
        yield f"stops: {answer.threshold.created.reason}"
    for one in answer.threshold.removed:
        yield f"the suppression {one} ends"
    if not answer.decisions:
        yield "no entities"
        return
    yield from columns(_HEAD, [_row(one) for one in answer.decisions])


def _row(decision: Decision) -> tuple[Cell, ...]:
    _, _, name = decision.entity.partition("/")
    return (
        name,
        decision.installed or "-",
        Text(decision.outcome, style=STYLES[decision.outcome]),
        _plan_text(decision.plan) if decision.plan else "",
        time_text(decision.next_evaluation_at) if decision.next_evaluation_at else "",
        "; ".join(_reasons(decision)),
    )


def _plan_text(plan: PlanView) -> str:
    """Return a plan in a few words: ``UPGRADE 1.1.0, downtime``."""
    words = [f"{plan.intent} {plan.to or ''}".strip()]
    words += ["downtime"] if plan.downtime else []
    words += [f"secrets {', '.join(plan.secrets)}"] if plan.secrets else []
    return ", ".join(words)


def _reasons(decision: Decision) -> Iterator[str]:
    """Yield why a decision is as it is: every constraint that does not hold, then the releases that
    were not chosen, then remarks."""
    failed = list(map(_verdict_text, _failed(decision.constraints)))
    yield from failed
    if not failed and decision.code:
        yield decision.code
    shown = decision.rejected_targets[:_REJECTED_SHOWN_LIMIT]
    if decision.plan is None and failed:
        shown = shown[1:]  # the constraints are those of the first
    for one in shown:
        yield f"not {one.version}: {one.code} {one.message}"
    for note in decision.notes:
        yield f"{note.code}: {note.message}"
    if decision.waiting is not None:
        why = ", ".join(one.code for one in _failed(decision.waiting.constraints))
        yield f"{_plan_text(decision.waiting.plan)} waits: {why}"
    if decision.discarded is not None:
        yield f"plan {decision.discarded.number} discarded: {decision.discarded.reason}"
    if decision.cancel is not None:
        yield f"cancel the plan: {decision.cancel}"


def _failed(verdicts: tuple[Verdict, ...]) -> Iterator[Verdict]:
    return (one for one in verdicts if one.state is VerdictState.FAILED)


def _verdict_text(verdict: Verdict) -> str:
    return f"{verdict.id} {verdict.code}: {verdict.message}"


def time_text(time: datetime) -> str:
    """Return a time in UTC, with its day of the week."""
    return f"{time.astimezone(UTC):%a %Y-%m-%d %H:%M:%S}Z".replace(":00Z", "Z")


_KINDS = {
    LineKind.ISSUED: "cyan",
    LineKind.SUCCEEDED: "green",
    LineKind.BLOCKED: "yellow",
    LineKind.CANCELLED: "magenta",
    LineKind.FAILED: "bold red",
    LineKind.REFUSED: "bold red",
    LineKind.STOPPED: "bold red",
    LineKind.PROMOTED: "green",
    LineKind.HELD: "yellow",
    LineKind.RECALLED: "bold red",
    LineKind.EXPIRED: "magenta",
}


def simulation_lines(result: Simulation) -> Iterator[str | Text]:
    """Yield what happens in a simulation, then what is decided at its end."""
    yield Text(f"from {time_text(result.start)} to {time_text(result.end)}", style="bold")
    rows = [
        (
            time_text(one.at),
            Text(one.kind, style=_KINDS.get(one.kind, "")),
            "/".join(filter(None, (one.environment, one.entity))),
            one.text,
        )
        for one in result.entries
    ]
    if rows:
        yield from columns(("TIME", "WHAT", "WHERE", "MORE"), rows)
    else:
        yield "nothing happens"
    if not result.complete:
        yield "stopped early: the limit of decisions is reached"
    for answer in result.final:
        yield ""
        yield from decision_lines(answer)
