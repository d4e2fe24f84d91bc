"""Plans of a service."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field

from temporal_plans.domain.plans.plan import ParameterSpec
from temporal_plans.domain.plans.plan_file import normalise
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.loading.forms.fields import (
    Text,
)
from temporal_plans.loading.services.sections.value import FileValue


def _strategy(value: object) -> object:
    """Convert ``serial`` or ``{name: waves, waves: [1, "25%"]}``, in which counts are texts."""
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping):
        return value
    settings = dict(cast(Mapping[str, object], value))
    waves = settings.get("waves")
    if isinstance(waves, list):
        settings["waves"] = [_count(wave) for wave in cast(list[object], waves)]
    return settings


def _count(wave: object) -> object:
    return int(wave) if isinstance(wave, str) and wave.isdecimal() and len(wave) < 10 else wave


StrategyField = Annotated[StrategySpec, BeforeValidator(_strategy)]


class PhasePlanFile(FileValue):
    """A phase of a service's plan: the instances of one pod, each launched by one or more steps."""

    pod: Text = Field(
        description="The pod type whose instances the phase launches.", examples=["hello"]
    )
    strategy: StrategyField = Field(
        default=StrategySpec(),
        description="Which of the phase's steps may be worked on at a time.",
        examples=["canary"],
    )
    steps: tuple[dict[str, tuple[tuple[str, ...], ...]], ...] = Field(
        default=(),
        description="The steps of each instance: an entry maps an instance's index, or `default`"
        " for all others, to a list of steps, each a list of the tasks that it launches. `[]` skips"
        " an instance. Without `steps` every instance has one step that launches all its tasks.",
        examples=[[{"0": [["bootstrap"], ["server"]]}, {"default": [["server"]]}]],
    )


def _parameters(value: object) -> object:
    """Convert parameters by name or as a list, as in a plan file."""
    document = normalise({"parameters": value})
    return cast(dict[str, Any], document)["parameters"]


class PlanSectionFile(FileValue):
    """A plan of the service."""

    strategy: StrategyField = Field(
        default=StrategySpec(),
        description="Which of the plan's phases may be worked on at a time.",
        examples=["parallel"],
    )
    phases: Annotated[dict[str, PhasePlanFile], Field(min_length=1)] = Field(
        description="The plan's phases by name, in their order."
    )
    parameters: Annotated[tuple[ParameterSpec, ...], BeforeValidator(_parameters)] = Field(
        default=(),
        description="The parameters that a start of the plan may set; each becomes an environment"
        " variable of the tasks that the plan launches. When empty: any name is accepted.",
        examples=[{"LABEL": {"default": "nightly"}}],
    )
