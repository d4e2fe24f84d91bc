"""The base of the sections of a service file."""

from collections.abc import Mapping
from typing import ClassVar, cast

from pydantic import ConfigDict, model_validator

from temporal_plans.domain.values.model import Value, kebab


class FileValue(Value):
    """A mapping of the file. Null means a mapping without entries; as an entry, its default."""

    model_config = ConfigDict(allow_inf_nan=False)

    UNKNOWN_KEYS: ClassVar[Mapping[str, str]] = {}
    """The fixes for keys that a model lacks but other systems' files have."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_not_given(cls, value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            return value
        entries = cast(Mapping[str, object], value)
        return {k: v for k, v in entries.items() if v is not None or k not in cls._keys()}

    @classmethod
    def _keys(cls) -> frozenset[str]:
        return frozenset({*cls.model_fields, *map(kebab, cls.model_fields)})
