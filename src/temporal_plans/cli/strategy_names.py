"""Strategies that are not built in: a developer's own, which only workers know, or mistyped."""

from difflib import get_close_matches

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.strategies import NAMES

_SAME_WORD = 0.8
"""How alike two names are when one is taken for the other mistyped: ``paralel``, but not
``serial-by-rack``."""


def only_workers_know(spec: PlanSpec, *, source: str = "") -> tuple[Problem, ...]:
    """The strategies that a worker must have registered. Raises SpecError for mistyped ones."""
    known = problems(spec)
    unknown = tuple(one for one in problems(spec, strategies=NAMES) if one not in known)
    mistyped = [one for one in unknown if get_close_matches(str(one.value), NAMES, 1, _SAME_WORD)]
    if mistyped:
        raise SpecError(mistyped, source=source)
    return unknown
