"""Whether a configuration may be deployed, and the plans that it gives (reference 5.4, 5.7)."""

from collections.abc import Sequence

from temporal_plans.domain.change_check import ConfigValidator, refusals
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.generation import generate
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_customizer import PlanCustomizer, customized
from temporal_plans.domain.rollout import Rollout, rolled_out
from temporal_plans.domain.service import ServiceSpec

DEPLOY = "deploy"


def plans_of(
    spec: ServiceSpec,
    plans: Sequence[PlanSpec] | None,
    *,
    deployed_once: bool,
    customizers: Sequence[PlanCustomizer] = (),
) -> dict[str, PlanSpec]:
    """The plans of a configuration by name, ``deploy`` first: those given, or else those that its
    file has. Raises SpecError with all that is wrong with them."""
    made = plans or generate(spec, completed_before=deployed_once)
    return {plan.name: customized(plan, spec, customizers) for plan in made}


def problems(
    before: ServiceSpec | None,
    after: ServiceSpec,
    plans: Sequence[PlanSpec] | None,
    rollout: Rollout,
    *,
    deployed_once: bool,
    validators: Sequence[ConfigValidator] = (),
    customizers: Sequence[PlanCustomizer] = (),
) -> tuple[Problem, ...]:
    """Everything that keeps a configuration from being deployed after another, or as the first."""
    found = refusals(before, after, deployed_once=deployed_once, extra=validators)
    if found:
        return found
    try:
        made = plans_of(after, plans, deployed_once=deployed_once, customizers=customizers)
        if DEPLOY not in made:
            return (Problem(path="plans", message="there is no plan deploy", value=list(made)),)
        rolled_out(made[DEPLOY], rollout)
    except SpecError as error:
        return tuple(error.problems)
    return ()
