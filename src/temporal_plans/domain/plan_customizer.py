"""Developers' changes to generated plans before they run (reference 5.6)."""

from collections.abc import Callable, Collection, Iterable

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.service import ServiceSpec

PlanCustomizer = Callable[[PlanSpec, ServiceSpec], PlanSpec]
"""From a plan that was generated for a service to the one that is to run; to leave it, return it.

Asked for every plan but ``recovery``, in the Service workflow: it must be deterministic, quick, and
look at nothing but its arguments. The plan keeps its name.
"""


def customized(
    plan: PlanSpec,
    spec: ServiceSpec,
    customizers: Iterable[PlanCustomizer],
    *,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> PlanSpec:
    """The plan after all customizers, each given what the one before made of it.

    ``strategies`` and ``step_kinds`` are the names that the worker knows (see ``plan_check``).
    Raises SpecError, which names the customizer, when one fails or makes a plan that can't run.
    """
    for customizer in customizers:
        name = getattr(customizer, "__qualname__", repr(customizer))
        source = f"plan {plan.name} as customizer {name} has it"
        try:
            changed = customizer(plan, spec)
        except Exception as error:  # the developer's own code
            failure = Problem(path="", message=f"it failed: {type(error).__name__}: {error}")
            raise SpecError([failure], source=source) from error
        found = _problems(plan, changed, strategies, step_kinds)
        if found:
            raise SpecError(found, source=source)
        plan = changed
    return plan


def _problems(
    plan: PlanSpec,
    changed: object,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
) -> tuple[Problem, ...]:
    """What is wrong with a changed plan; one that is returned as it came is not looked at."""
    if not isinstance(changed, PlanSpec):
        return (Problem(path="", message="it is no PlanSpec", value=type(changed).__name__),)
    if changed == plan:
        return ()
    found = problems(changed, strategies, step_kinds)
    if changed.name != plan.name:
        text = "a customizer can't rename a plan"
        found = (
            Problem(path="name", message=text, value=changed.name, fix=f"keep {plan.name}"),
            *found,
        )
    return found
