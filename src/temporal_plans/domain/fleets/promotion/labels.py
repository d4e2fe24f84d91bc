"""Labels that channels, stages and filters ask for."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from temporal_plans.domain.fleets.names import ShortName

LabelValue = Annotated[str, StringConstraints(max_length=200)]
LabelValues = Annotated[dict[ShortName, LabelValue], Field(max_length=100)]
LabelRequirements = Annotated[
    dict[ShortName, Annotated[tuple[LabelValue, ...], Field(max_length=100)]],
    Field(max_length=100),
]
"""Values that are allowed, by label; without any the label only has to be there."""


def meets(labels: Mapping[str, str], label: str, values: tuple[str, ...]) -> bool:
    """Return whether labels have one with an allowed value."""
    return label in labels and (not values or labels[label] in values)


def unmet(labels: Mapping[str, str], required: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the requirements that labels do not meet, for people: ``tested = yes or partly``."""
    return tuple(
        label if not values else f"{label} = {' or '.join(values)}"
        for label, values in sorted(required.items())
        if not meets(labels, label, values)
    )
