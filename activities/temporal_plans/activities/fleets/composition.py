"""The plan of an entity, of the phases that its kind gives."""

from datetime import timedelta

from temporal_plans.activities.fleets.kinds.record import (
    PREPARE,
    REPORT,
    VERIFY,
    KindPlan,
)
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.plans.plan import PhaseSpec, StepSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.messages.fleets.names import environment_id, fleet_plan_name
from temporal_plans.messages.fleets.plans import ChangeOrder
from temporal_plans.messages.fleets.reports import EntityReport, ReportEntity
from temporal_plans.messages.plans import EngineInput, OwnerContext, PlanInput

_UNORDERED = frozenset({"parallel", "dependency"})

_REPORT_TIMEOUT = timedelta(minutes=1)
_HEARTBEAT_TIMEOUT = timedelta(seconds=10)
"""After which the report of a killed worker is repeated."""


def plan_input(order: ChangeOrder, kind: KindPlan) -> PlanInput:
    """Return the input of the plan that carries out an order. It stops on errors: an environment
    judges a failed change itself."""
    placed = _placed(kind, _report(order, kind))
    context = OwnerContext(
        owner=environment_id(order.environment),
        workflow_id=order.owner,
        plan=fleet_plan_name(order.entity, order.number),
        run=order.number,
        starter=order.starter,
        follows_rest=True,
    )
    strategy = kind.strategy
    if strategy.name in _UNORDERED:
        strategy, placed = StrategySpec(name="dependency"), _ordered(placed)
    return PlanInput(
        name=fleet_plan_name(order.entity, order.number),
        description=description(order),
        strategy=strategy,
        parameters=kind.parameters,
        arguments=dict(kind.arguments),
        on_error="stop",
        phases=placed,
        by=f"environment {order.environment}",
        reason=str(order.intent),
        engine=EngineInput(context=context),
    )


def description(order: ChangeOrder) -> str:
    """Return what a plan does, for people."""
    before, to = order.before.version, order.to.version
    versions = " -> ".join(one for one in (before, to) if one) or "nothing"
    return f"{order.intent} of {order.product}: {versions}"


def changes(phase: str) -> bool:
    """Return whether the steps of a phase may leave the entity in another state."""
    return phase not in (PREPARE, REPORT)


def _report(order: ChangeOrder, kind: KindPlan) -> PhaseSpec:
    report = ReportEntity(
        environment=order.environment,
        report=EntityReport(entity=order.entity, number=order.number, health=kind.health),
        owner="" if order.owner == environment_id(order.environment) else order.owner,
    )
    work = ActivityWork(
        type="report_entity",
        input=report.model_dump(mode="json"),
        timeout=_REPORT_TIMEOUT,
        heartbeat_timeout=_HEARTBEAT_TIMEOUT,
    )
    return PhaseSpec(name=REPORT, steps=(StepSpec(name="state", work=work),))


def _placed(kind: KindPlan, report: PhaseSpec) -> tuple[PhaseSpec, ...]:
    """Return the phases in their places. Steps that a kind has in ``report`` come before ours."""
    own = {one.name: one for one in kind.phases}
    first = own.get(REPORT)
    if first is not None:
        report = first.but(steps=(*first.steps, *report.steps))
    middle = tuple(one for one in kind.phases if one.name not in (PREPARE, VERIFY, REPORT))
    return (
        own.get(PREPARE, PhaseSpec(name=PREPARE)),
        *middle,
        own.get(VERIFY, PhaseSpec(name=VERIFY)),
        report,
    )


def _ordered(phases: tuple[PhaseSpec, ...]) -> tuple[PhaseSpec, ...]:
    """Return the phases with the order of the places as dependencies."""
    first, *middle, verify, report = phases
    between = tuple(one.name for one in middle)
    return (
        first.but(depends_on=()),
        *(one.but(depends_on=(*one.depends_on, first.name)) for one in middle),
        verify.but(depends_on=between or (first.name,)),
        report.but(depends_on=(verify.name,)),
    )
