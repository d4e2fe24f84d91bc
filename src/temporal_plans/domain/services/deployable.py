"""Whether a configuration may be deployed, and its plans (behaviour 5.4, 5.7)."""

from collections.abc import Sequence

from temporal_plans.domain.owners.rollout import Rollout, rolled_out
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.change_check import ConfigValidator, refusals
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.plan_customizer import PlanCustomizer, customized
from temporal_plans.domain.services.plan_names import DEPLOY
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Reason, SpecError


def plans_of(
    spec: ServiceSpec,
    plans: Sequence[PlanSpec] | None,
    *,
    deployed_once: bool,
    customizers: Sequence[PlanCustomizer] = (),
) -> dict[str, PlanSpec]:
    """Return the plans of a configuration by name, ``deploy`` first: those given, or else those of
    its file. Raises SpecError with all their problems."""
    made = plans or generate(spec, completed_before=deployed_once)
    return {plan.name: customized(plan, spec, customizers) for plan in made}


def problems(
    before: ServiceSpec | None,
    after: ServiceSpec,
    plans: Sequence[PlanSpec] | None,
    *,
    deployed_once: bool,
    validators: Sequence[ConfigValidator] = (),
    customizers: Sequence[PlanCustomizer] = (),
) -> tuple[Reason, ...]:
    """Return all problems of deploying ``after`` over ``before`` (None: as the first)."""
    found = refusals(before, after, deployed_once=deployed_once, extra=validators)
    if found:
        return found
    try:
        made = plans_of(after, plans, deployed_once=deployed_once, customizers=customizers)
        if DEPLOY not in made:
            return (Reason(field="plans", problem="there is no plan deploy", value=list(made)),)
    except SpecError as error:
        return tuple(error.reasons)
    return ()


def option_problems(
    spec: ServiceSpec,
    plans: Sequence[PlanSpec] | None,
    rollout: Rollout,
    *,
    deployed_once: bool,
    customizers: Sequence[PlanCustomizer] = (),
) -> tuple[Reason, ...]:
    """Return all problems of rolling out a configuration without problems of its own in this way.
    They concern the request only: the configuration could be deployed in another way."""
    made = plans_of(spec, plans, deployed_once=deployed_once, customizers=customizers)
    try:
        rolled_out(made[DEPLOY], rollout)
    except SpecError as error:
        return tuple(error.reasons)
    return ()
