"""The base of what package files have: keys are written in camel case, null means not given."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    ConfigDict,
    StrictBool,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from temporal_plans.domain.packages.printing import printed
from temporal_plans.domain.values.model import CompactValue


class PackageValue(CompactValue):
    """A mapping of a package file. As a message it has the keys of Python."""

    model_config = ConfigDict(alias_generator=AliasGenerator(validation_alias=to_camel))

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return value
        entries = cast(Mapping[str, object], value)
        return {key: entry for key, entry in entries.items() if entry is not None}


def as_text(value: object) -> object:
    """Return a scalar of YAML as text; everything else as it is."""
    return printed(value) if isinstance(value, bool | int | float) else value


ENTRIES_LIMIT = 2_000
"""Entries of a list of a package file."""

Text = Annotated[
    str,
    BeforeValidator(as_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
"""A text; other scalars of YAML are converted: ``5.7`` is the text ``5.7``, ``3.10`` is ``3.1``."""

Flag = StrictBool
