"""Explanations of a package's steps, completed with what helps against the cause in the cluster."""

from temporal_plans.domain.packages.object_causes import cause_of_reason
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanation, Explanations
from temporal_plans.domain.plans.hint import Hint

_HELD_UP = (Cause.BACKOFF, Cause.ERROR, Cause.READINESS)


def is_held_up(explanation: Explanation) -> bool:
    """Return whether something in the cluster may keep a step from being complete."""
    return bool(explanation.step) and explanation.cause in _HELD_UP


def with_causes(explanations: Explanations) -> Explanations:
    """Return the explanations with a hint at what helps each step of a package whose cause is
    known."""
    return explanations.but(explanations=tuple(map(_completed, explanations.explanations)))


def _completed(one: Explanation) -> Explanation:
    cause = cause_of_reason(one.text) if is_held_up(one) else None
    return one.but(hints=(*one.hints, Hint(purpose=cause.fix))) if cause else one
