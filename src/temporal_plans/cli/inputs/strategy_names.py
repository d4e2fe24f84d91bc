"""Strategies that are not built in: a developer's own, which workers know, or mistyped ones."""

from difflib import get_close_matches

from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.values.refusal import Reason, SpecError

_TYPO_SIMILARITY = 0.8
"""From this similarity on, a name is taken for a mistyped built-in one: ``paralel``, but not
``serial-by-rack``."""


def custom_strategies(spec: PlanSpec, *, source: str = "") -> tuple[Reason, ...]:
    """Return a reason for each strategy that a worker must register. Raises SpecError for mistyped
    built-in ones."""
    known = problems(spec)
    unknown = tuple(reason for reason in problems(spec, strategies=NAMES) if reason not in known)
    mistyped = [
        reason
        for reason in unknown
        if get_close_matches(str(reason.value), NAMES, 1, _TYPO_SIMILARITY)
    ]
    if mistyped:
        raise SpecError(mistyped, source=source)
    return unknown
