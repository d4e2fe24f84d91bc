"""The specification of a plan: its phases, their steps, and the work of a step.

The same values come from a plan file (``loading.plans``), the input of the Plan workflow, and the
generation of a service's plans.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from temporal_plans.domain.kinds import AnyWork
from temporal_plans.domain.plans.plan_file import normalise
from temporal_plans.domain.plans.strategies.spec import Strategy, StrategySpec
from temporal_plans.domain.values.model import CompactValue


class ParameterSpec(CompactValue):
    """A declared parameter of a plan. ``pattern`` must match the whole value."""

    name: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="The parameter's name: letters, digits and `_`, a digit not first.",
        examples=["SNAPSHOT"],
    )
    description: str = Field(default="", description="What it is for.")
    default: str | None = Field(
        default=None,
        description="The value when none is given. Numbers and booleans are taken as text. When"
        " absent: the parameter has no value.",
        examples=["nightly"],
    )
    required: bool = Field(
        default=False, description="Whether a value must be given. Not together with `default`."
    )
    pattern: str | None = Field(
        default=None,
        description="A regular expression (RE2) that must match the whole value.",
        examples=["[0-9]+"],
    )


class StepSpec(CompactValue):
    """One unit of work."""

    name: str = Field(
        description="The step's name, once in its phase: at most 200 characters, no `/`.",
        examples=["freeze"],
    )
    work: AnyWork = Field(
        description="What the step does, by its `kind`: the long form of the word for a kind.",
        examples=[{"kind": "sleep", "duration": "5m"}],
    )
    depends_on: tuple[str, ...] = Field(
        default=(),
        description="Steps of the phase that must be complete first. Under `parallel` the phase"
        " gets the strategy `dependency`.",
        examples=[["freeze"]],
    )
    errors: tuple[str, ...] = Field(
        default=(),
        description="Faults that were found when the plan was generated: such a step reads ERROR"
        " and is never executed. Not to be written by hand.",
    )


class PhaseSpec(CompactValue):
    """Steps that belong together, and the strategy that orders them."""

    name: str = Field(
        description="The phase's name, once in the plan: at most 200 characters, no `/`.",
        examples=["prepare"],
    )
    strategy: Strategy = Field(
        default=StrategySpec(),
        description="Which of the steps may be worked on at a time.",
        examples=["parallel"],
    )
    depends_on: tuple[str, ...] = Field(
        default=(),
        description="Phases that must be complete first. Under `parallel` the plan gets the"
        " strategy `dependency`.",
        examples=[["prepare"]],
    )
    steps: tuple[StepSpec, ...] = Field(
        default=(), description="The steps in order: by name, or as a list."
    )


STEPS_AT_ONCE: Mapping[str, int] = {"child": 32, "inline": 100}
"""The limit of steps of a phase at work, as child workflows or inside the phase: more would stall
the server."""


STEPS_LIMIT = 25_000
"""Steps of a plan: the states of more do not surely fit into what one run hands to the next."""


class PlanSpec(CompactValue):
    """A plan: phases, in an order, and the steps of each."""

    name: str = Field(
        description="The plan's name, by default its workflow id: at most 200 characters, no `/`.",
        examples=["backup"],
    )
    description: str = Field(default="", description="What it is for.")
    strategy: Strategy = Field(
        default=StrategySpec(),
        description="Which of the phases may be worked on at a time.",
        examples=["serial"],
    )
    parameters: tuple[ParameterSpec, ...] | None = Field(
        default=None,
        description="The parameters that a start may set: by name, or as a list. When absent: any."
        " When empty: none.",
        examples=[{"SNAPSHOT": "nightly"}],
    )
    steps: Literal["child", "inline"] = Field(
        default="child",
        description="`child`: every step is a child workflow of its phase. `inline`: steps run"
        " inside their phase, many times faster, with the same statuses, commands and names.",
    )
    on_error: Literal["continue", "stop"] = Field(
        default="continue",
        description="What a step in ERROR means for the others. `continue`: they go on. `stop`:"
        " nothing more begins, and steps that have begun are cancelled, until the step is restarted"
        " or forced to complete; then they are done again.",
    )
    reentrant: bool = Field(
        default=True,
        description="Whether the plan may be restarted or stopped once a step of it has begun."
        " When `false`, both are refused unless they are forced.",
    )
    phases: tuple[PhaseSpec, ...] = Field(
        default=(),
        description="The phases in order: by name, or as a list. A plan needs one at least.",
    )

    @model_validator(mode="before")
    @classmethod
    def _normalised(cls, document: object) -> object:
        """Accept all forms of a plan file (``domain.plans.plan_file``)."""
        return normalise(document)


__all__ = [
    "ParameterSpec",
    "PhaseSpec",
    "PlanSpec",
    "StepSpec",
]
