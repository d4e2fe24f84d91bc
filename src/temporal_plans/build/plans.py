"""Plans: from the arguments of the builders to the checked ``PlanSpec``.

A plan is first converted into the document of a plan file, and then loaded like one. So a plan in
Python and the same plan in a file can't differ, and their faults have the same texts.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from temporal_plans.build.documents import JsonResult, Settings, as_json, given
from temporal_plans.build.phases import Phase
from temporal_plans.build.steps import Step
from temporal_plans.build.strategies import Strategy
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.plans import load_plan_text


@dataclass(frozen=True)
class Parameter:
    """A declared parameter, not yet checked."""

    name: str
    settings: Settings

    @property
    def document(self) -> Settings:
        """The parameter as an entry of a plan file."""
        return {"name": self.name, **self.settings}


def parameter(
    name: str,
    *,
    description: str = "",
    default: str | int | float | bool | None = None,
    required: bool = False,
    pattern: str | None = None,
) -> Parameter:
    """Declare a parameter of a plan; its value replaces ``${name}``. ``pattern`` must match the
    whole value."""
    return Parameter(
        name,
        given(
            description=description or None,
            default=default,
            required=required or None,
            pattern=pattern,
        ),
    )


def plan(
    name: str,
    *phases: Phase,
    description: str = "",
    strategy: Strategy | str | None = None,
    parameters: Sequence[Parameter] | None = None,
    steps: Literal["child", "inline"] = "child",
    on_error: Literal["continue", "stop"] = "continue",
    reentrant: bool = True,
) -> PlanSpec:
    """Make and check a plan. ``parameters`` None allows any parameter, an empty sequence none.

    ``steps="inline"`` runs the steps inside their phase's workflow, for plans of very many short
    steps. ``on_error="stop"``: while a step is in ERROR nothing more begins, and steps at work are
    cancelled. ``reentrant=False``: once it has begun, it is restarted or stopped by force only.
    Only the worker knows your own strategies and step kinds; it checks them when the plan
    starts.

    Raises SpecError with all faults of the plan.
    """
    faults = [fault for phase in phases for fault in _faults(phase)]
    document = given(
        name=name,
        description=description or None,
        strategy=_strategy(strategy),
        parameters=None if parameters is None else [p.document for p in parameters],
        steps=steps,
        on_error=None if on_error == "continue" else on_error,
        reentrant=None if reentrant else False,
        phases=[_phase(phase) for phase in phases],
    )
    return _checked(document, faults)


def _checked(document: Settings, faults: Sequence[Reason]) -> PlanSpec:
    result = as_json(document)
    found = [*faults, *_json_faults("", result)]
    if not result.fault:
        try:
            spec = load_plan_text(json.dumps(result.value), source="plan.json")
        except SpecError as error:
            found += error.reasons
        else:
            if not found:
                return spec
    raise SpecError(found, source=f"plan {document['name']}")


def _phase(phase: Phase) -> Settings:
    names = phase.step_names
    by_step = {id(step): name for step, name in zip(phase.steps, names, strict=True)}

    def depends_on(step: Step) -> list[str]:
        """Return the names of steps; a step of another phase is a fault, and is omitted."""
        found = (o if isinstance(o, str) else by_step.get(id(o)) for o in step.depends_on)
        return [name for name in found if name is not None]

    return given(
        name=phase.name,
        strategy=_strategy(phase.strategy),
        depends_on=[o if isinstance(o, str) else o.name for o in phase.depends_on] or None,
        steps=[
            {
                **given(name=name, depends_on=depends_on(step) or None),
                step.kind: {key: as_json(value).value for key, value in step.settings.items()},
            }
            for step, name in zip(phase.steps, names, strict=True)
        ],
    )


def _faults(phase: Phase) -> Iterator[Reason]:
    """Yield the faults that the document does not show."""
    for step, name in zip(phase.steps, phase.step_names, strict=True):
        path = f"phases.{phase.name}.steps.{name}"
        if step.fault:
            fix = "decorate it, or give the name of a type"
            yield Reason(field=f"{path}.{step.kind}.type", problem=step.fault, fix=fix)
        for key, value in step.settings.items():
            yield from _json_faults(f"{path}.{step.kind}.{key}", as_json(value))
        for other in step.depends_on:
            if isinstance(other, Step) and other not in phase.steps:
                yield Reason(
                    field=f"{path}.depends-on",
                    problem="is a step of another phase",
                    value=other.name or other.default_name,
                    fix="make the phase depend on that phase",
                )


def _json_faults(path: str, result: JsonResult) -> Iterator[Reason]:
    if result.fault:
        yield Reason(field=path, problem=f"can't be written as JSON: {result.fault}")


def _strategy(strategy: Strategy | str | None) -> Settings | str | None:
    return strategy.document if isinstance(strategy, Strategy) else strategy
