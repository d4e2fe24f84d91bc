"""Developers' changes to generated plans before they run (behaviour 5.6)."""

from collections.abc import Callable, Collection, Iterable

from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.domain.values.trace import trace_of

PlanCustomizer = Callable[[PlanSpec, ServiceSpec], PlanSpec]
"""Return the plan to run in place of a generated plan; return the same plan to change nothing.

Called for every plan but ``recovery``, in the Service workflow: it must be deterministic and quick,
and use nothing but its arguments. The plan keeps its name.
"""


def customized(
    plan: PlanSpec,
    spec: ServiceSpec,
    customizers: Iterable[PlanCustomizer],
    *,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> PlanSpec:
    """Return the plan after all customizers, each applied to the result of the one before.

    ``strategies`` and ``step_kinds`` are the names that the worker knows (see ``plan_check``).
    Raises SpecError, which names the customizer, when one fails or makes a plan that can't run.
    """
    for customizer in customizers:
        name = getattr(customizer, "__qualname__", repr(customizer))
        try:
            changed = customizer(plan, spec)
        except Exception as error:  # the developer's own code
            failure = Reason(
                problem=f"the customizer {name} failed for plan {plan.name}: "
                f"{type(error).__name__}: {error}",
                fix="fix it, or remove it from the worker's plugin",
                trace=trace_of(error),
            )
            raise SpecError([failure]) from error
        found = _problems(plan, changed, strategies, step_kinds)
        if found:
            made = f"in plan {plan.name} of customizer {name}"
            raise SpecError(_named(reason, made) for reason in found)
        plan = changed
    return plan


def _named(reason: Reason, made: str) -> Reason:
    return reason.but(problem=f"{reason.problem}, {made}")


def _problems(
    plan: PlanSpec,
    changed: object,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
) -> tuple[Reason, ...]:
    """Return the problems of a changed plan; an unchanged plan is not checked."""
    if not isinstance(changed, PlanSpec):
        return (
            Reason(
                field="",
                problem="the customizer did not return a PlanSpec",
                value=type(changed).__name__,
            ),
        )
    if changed == plan:
        return ()
    found = problems(changed, strategies, step_kinds)
    if changed.name != plan.name:
        text = "a customizer can't rename a plan"
        found = (
            Reason(field="name", problem=text, value=changed.name, fix=f"keep {plan.name}"),
            *found,
        )
    return found
