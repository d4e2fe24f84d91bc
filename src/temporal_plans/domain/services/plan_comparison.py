"""The differences between two configurations outside of their pods: their plans, and settings.

Plans are compared as they are written. The plan ``deploy`` that is generated without a ``plans``
section differs only by its pods, whose changes are shown already.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.strategies.spec import Strategy, StrategySpec
from temporal_plans.domain.services.change import FieldChange, PlanChange, PlanEffect
from temporal_plans.domain.services.change_texts import field_change, json_of, text_of
from temporal_plans.domain.services.generation import generate, problems
from temporal_plans.domain.services.plan_names import DEPLOY
from temporal_plans.domain.services.spec import PhaseYaml, PlanYaml, ServiceSpec

_strategy: TypeAdapter[StrategySpec] = TypeAdapter(Strategy)

Plans = Sequence[PlanSpec] | None
"""Plans that replace those of the file; None without any."""

_SETTINGS = {
    "web_url": "web-url",
    "principal": "scheduler.principal",
    "zookeeper": "scheduler.zookeeper",
    "goal": "goal",
}
"""Fields of a service that are no part of a pod, and their paths in the file. ``user`` is compared
with the pods."""


def settings_changes(old: ServiceSpec, new: ServiceSpec) -> tuple[FieldChange, ...]:
    """Return the fields of the service itself that differ."""
    return tuple(
        field_change(path, text_of(before), text_of(after)).but(restarts=False)
        for name, path in _SETTINGS.items()
        if (before := getattr(old, name)) != (after := getattr(new, name))
    )


def plan_changes(
    old: ServiceSpec, old_plans: Plans, new: ServiceSpec, new_plans: Plans
) -> tuple[PlanChange, ...]:
    """Return the plans that differ, in the order of the new configuration."""
    if (old.plans, old_plans) == (new.plans, new_plans):
        return ()
    made = old_plans is not None or new_plans is not None
    before = _made(old, old_plans) if made else _written(old)
    after = _made(new, new_plans) if made else _written(new)
    names = dict.fromkeys((*after, *before))
    found = (_plan_change(name, before.get(name), after.get(name)) for name in names)
    return tuple(change for change in found if change is not None)


_Facts = Mapping[str, Mapping[str, str | None]]
"""A plan by its parts (the empty name: itself; ``parameters.X``; ``phases.X``), and each part by
its fields."""


_ORDER = "phases"
"""The part of a plan that is the order of its phases."""


def _written(spec: ServiceSpec) -> dict[str, _Facts]:
    if spec.plans is None:
        whole = {pod.type: PhaseYaml(pod=pod.type) for pod in spec.pods}
        return {DEPLOY: _facts_written(PlanYaml(phases=whole))}
    return {name: _facts_written(plan) for name, plan in spec.plans.items()}


def _made(spec: ServiceSpec, plans: Plans) -> dict[str, _Facts]:
    if plans is None:
        plans = () if problems(spec) else generate(spec)
    return {plan.name: _facts_made(plan) for plan in plans}


def _facts_written(plan: PlanYaml) -> _Facts:
    facts: dict[str, Mapping[str, str | None]] = {"": {"strategy": _strategy_text(plan.strategy)}}
    facts[_ORDER] = {"": ", ".join(plan.phases)}
    for parameter in plan.parameters:
        facts[f"parameters.{parameter.get('name')}"] = {"": json_of(parameter)}
    for name, phase in plan.phases.items():
        facts[f"phases.{name}"] = {
            "pod": phase.pod,
            "strategy": _strategy_text(phase.strategy),
            "steps": text_of(phase.steps),
        }
    return facts


def _facts_made(plan: PlanSpec) -> _Facts:
    facts: dict[str, Mapping[str, str | None]] = {
        "": {
            "strategy": _strategy_text(plan.strategy),
            "steps": plan.steps,
            "description": plan.description or None,
        },
        _ORDER: {"": ", ".join(phase.name for phase in plan.phases)},
    }
    for parameter in plan.parameters or ():
        facts[f"parameters.{parameter.name}"] = {"": json_of(parameter)}
    for phase in plan.phases:
        facts[f"phases.{phase.name}"] = {
            "strategy": _strategy_text(phase.strategy),
            "depends-on": text_of(phase.depends_on),
            **_steps(phase),
        }
    return facts


def _steps(phase: PhaseSpec) -> dict[str, str | None]:
    return {f"steps.{step.name}": json_of(step.but(name="")) for step in phase.steps}


def _strategy_text(written: Any) -> str:
    try:
        spec = _strategy.validate_python(written)
    except ValidationError:  # refused where the configuration is checked
        return json_of(written)
    return spec.name if spec == StrategySpec(name=spec.name) else json_of(spec)


def _plan_change(name: str, before: _Facts | None, after: _Facts | None) -> PlanChange | None:
    if before is None or after is None:
        effect = PlanEffect.ADD if before is None else PlanEffect.REMOVE
        return PlanChange(plan=name, effect=effect)
    fields = tuple(_fields(before, after))
    return PlanChange(plan=name, effect=PlanEffect.CHANGE, fields=fields) if fields else None


def _fields(before: _Facts, after: _Facts) -> Iterator[FieldChange]:
    reordered = before.keys() == after.keys()
    for part in dict.fromkeys((*before, *after)):
        old, new = before.get(part), after.get(part)
        if part == _ORDER and not reordered:
            continue  # the phases that one side has are changes of their own
        if old is None or new is None:
            change = field_change(part, _brief(old), _brief(new))
            yield change.but(restarts=False)
            continue
        for field in dict.fromkeys((*old, *new)):
            if old.get(field) != new.get(field):
                path = ".".join(filter(None, (part, field)))
                yield field_change(path, old.get(field), new.get(field)).but(restarts=False)


def _brief(part: Mapping[str, str | None] | None) -> str | None:
    """Return a part that only one side has, in a line."""
    if part is None:
        return None
    return ", ".join(" ".join(filter(None, (field, text))) for field, text in part.items() if text)
