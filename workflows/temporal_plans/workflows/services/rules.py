"""Developers' rules for services: changes of configurations and plans, recovery of pods."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporal_plans.domain.services.change_check import ConfigValidator
from temporal_plans.domain.services.plan_customizer import PlanCustomizer
from temporal_plans.domain.services.recovery.book import Recoverer
from temporal_plans.workflows.mechanics.externs import extern

EXTERN = "temporal_plans_service_rules"
"""The name under which the worker passes the rules."""


@dataclass(frozen=True)
class ServiceRules:
    """``recoverers`` are called in order for the phases that recover a pod; ``plan_customizers``
    change plans before they run; ``config_validators`` refuse configurations."""

    recoverers: Sequence[Recoverer] = ()
    plan_customizers: Sequence[PlanCustomizer] = ()
    config_validators: Sequence[ConfigValidator] = ()


def service_rules() -> ServiceRules:
    """Return the rules of this workflow's worker; no rules without the plugin."""
    return extern(EXTERN, ServiceRules) or ServiceRules()
