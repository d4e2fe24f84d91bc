"""A strategy as a plan gives it."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from temporal_plans.domain.values.model import CompactValue


class StrategySpec(CompactValue):
    """A strategy by name and settings: ``serial``, or ``{name: max-parallel, limit: 3}``.

    ``limit`` bounds ``max-parallel``; ``waves`` are counts (3) or shares ("25%") of all children
    for ``waves``; ``proceeds`` is how many continues a canary needs, ``gates`` whether they are for
    steps or for pods; ``options`` are settings of strategies that users register.
    """

    name: str = Field(
        default="serial",
        description="The strategy's name: one of behaviour 2, or one that a worker registered.",
        examples=["parallel"],
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="For `max-parallel`: how many children are worked on at once, at most.",
        examples=[3],
    )
    waves: tuple[int | str, ...] = Field(
        default=(),
        description="For `waves`: the sizes of the waves, as counts or as shares of all children."
        " The last size repeats.",
        examples=[[1, "25%"]],
    )
    proceeds: int = Field(
        default=2,
        ge=1,
        description="For the canaries: how many children wait for a continue each.",
    )
    gates: Literal["steps", "pods"] = Field(
        default="steps",
        description="For the canaries of phases: whether a gate is before each of the first steps,"
        " or before each of the first pods, all steps of which follow one continue.",
    )
    options: dict[str, Any] = Field(
        default={}, description="Settings of a strategy that a worker registered."
    )


def _from_name(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Strategy = Annotated[StrategySpec, BeforeValidator(_from_name)]
"""Written as its name, or as a mapping with its settings."""
