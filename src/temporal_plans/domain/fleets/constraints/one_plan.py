"""K24: no other plan of the entity runs, and the environment has a place for one more."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def alone(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    """The bound of the environment does not hold back commands."""
    plan = proposal.entity.state.active_plan
    if plan is not None:
        reason = Reason(
            field="active-plan",
            problem=f"plan {plan.number} ({plan.intent}) is {plan.status}",
            value={"number": plan.number, "intent": plan.intent.value, "status": plan.status.value},
        )
        return refused(FleetCode.ACTIVE_PLAN, reason, cure="wait for its end, or cancel it")
    limit = world.settings.max_active_plans
    if limit is None or proposal.intent is Intent.BREAK_GLASS or world.active < limit:
        return None
    reason = Reason(
        field="max-active-plans",
        problem="1 plan runs in the environment"
        if world.active == 1
        else f"{world.active} plans run in the environment",
        value={"active": world.active, "limit": limit},
    )
    return refused(FleetCode.ACTIVE_PLAN, reason, cure="wait, or raise max-active-plans")


ONE_PLAN = Constraint(
    id="K24",
    title="no other plan runs",
    stage=Stage.ISSUE,
    rule=alone,
    applies="IN UP CF UN RO RB CM",
    who_can_act=("entity operator",),
)
