"""Plans: from what the builders were given to the checked ``PlanSpec``.

A plan is first written down as a plan file would have it and then loaded as one. So a plan in
Python and the same plan in a file cannot differ, and their faults are told in the same words.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from temporal_plans.build.documents import Settings, Written, as_json, given
from temporal_plans.build.phases import Phase
from temporal_plans.build.steps import Step
from temporal_plans.build.strategies import Strategy
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.loading.plans import load_plan_text


@dataclass(frozen=True)
class Parameter:
    """A declared parameter as it was written."""

    name: str
    settings: Settings

    @property
    def document(self) -> Settings:
        return {"name": self.name, **self.settings}


def parameter(
    name: str,
    *,
    description: str = "",
    default: str | int | float | bool | None = None,
    required: bool = False,
    pattern: str | None = None,
) -> Parameter:
    """A parameter of the plan; its value replaces ``${name}``. ``pattern`` must match all of it."""
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
) -> PlanSpec:
    """The plan, checked. ``parameters`` None takes any parameter, an empty sequence none.

    ``steps="inline"`` runs the steps inside their phase's workflow: for plans of very many short
    ones. Strategies and step kinds of your own are known to the worker only, which checks them when
    the plan starts.

    Raises SpecError with everything that is wrong with the plan.
    """
    faults = [fault for phase in phases for fault in _faults(phase)]
    document = given(
        name=name,
        description=description or None,
        strategy=_strategy(strategy),
        parameters=None if parameters is None else [p.document for p in parameters],
        steps=steps,
        phases=[_phase(phase) for phase in phases],
    )
    return _checked(document, faults)


def _checked(document: Settings, faults: Sequence[Problem]) -> PlanSpec:
    written = as_json(document)
    found = [*faults, *_unwritten("", written)]
    if not written.fault:
        try:
            spec = load_plan_text(json.dumps(written.value), source="plan.json")
        except SpecError as error:
            found += error.problems
        else:
            if not found:
                return spec
    raise SpecError(found, source=f"plan {document['name']}")


def _phase(phase: Phase) -> Settings:
    names = phase.step_names
    by_step = {id(step): name for step, name in zip(phase.steps, names, strict=True)}

    def wanted(step: Step) -> list[str]:
        """By name; a step of another phase is a fault, and left out."""
        texts = (o if isinstance(o, str) else by_step.get(id(o)) for o in step.depends_on)
        return [name for name in texts if name is not None]

    return given(
        name=phase.name,
        strategy=_strategy(phase.strategy),
        depends_on=[o if isinstance(o, str) else o.name for o in phase.depends_on] or None,
        steps=[
            {
                **given(name=name, depends_on=wanted(step) or None),
                step.kind: {key: as_json(value).value for key, value in step.settings.items()},
            }
            for step, name in zip(phase.steps, names, strict=True)
        ],
    )


def _faults(phase: Phase) -> Iterator[Problem]:
    """What the document can no longer show."""
    for step, name in zip(phase.steps, phase.step_names, strict=True):
        path = f"phases.{phase.name}.steps.{name}"
        if step.fault:
            fix = "decorate it, or name a type"
            yield Problem(path=f"{path}.{step.kind}.type", message=step.fault, fix=fix)
        for key, value in step.settings.items():
            yield from _unwritten(f"{path}.{step.kind}.{key}", as_json(value))
        for other in step.depends_on:
            if isinstance(other, Step) and other not in phase.steps:
                yield Problem(
                    path=f"{path}.depends-on",
                    message="is a step of another phase",
                    value=other.name or other.called,
                    fix="let the phase depend on that phase",
                )


def _unwritten(path: str, written: Written) -> Iterator[Problem]:
    if written.fault:
        yield Problem(path=path, message=f"can't be written as JSON: {written.fault}")


def _strategy(strategy: Strategy | str | None) -> Settings | str | None:
    return strategy.document if isinstance(strategy, Strategy) else strategy
