"""The base of every value in this project, and the field types they share.

Values are immutable and forbid unknown keys, so that a typo in a file or in a message is reported
instead of ignored. Keys are written kebab-case in files and snake_case in Python and JSON: payloads
of workflows and the output of commands have the same keys. Both are accepted everywhere.
"""

import re
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Self, cast

from pydantic import (
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    StringConstraints,
    WithJsonSchema,
    model_serializer,
)


def kebab(name: str) -> str:
    """Return a name as files write it: ``task-queue`` for ``task_queue``."""
    return name.replace("_", "-")


def file_key(model: type[BaseModel], name: str) -> str:
    """Return the key that files have for a field of a model."""
    aliases = model.model_config.get("alias_generator")
    alias = aliases.validation_alias if isinstance(aliases, AliasGenerator) else None
    key = alias(name) if alias else None
    return key if isinstance(key, str) else kebab(name)


class Value(BaseModel):
    """An immutable value with known keys only.

    Its validator is built at its first use: most commands use few of the values that they import.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        allow_inf_nan=False,  # JSON has neither: written, they are null and can't be read again
        alias_generator=AliasGenerator(validation_alias=kebab),
        defer_build=True,
    )

    def but(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, without validation."""
        return self.model_copy(update=changes)


WITH_DEFAULTS = {"defaults": True}
"""The context for a dump that programs read: every field is written."""


class CompactValue(Value):
    """A value that leaves out fields at their default when written.

    For the values that a plan has thousands of: a tree of 2,000 steps must fit one payload.
    """

    @model_serializer(mode="wrap")
    def _without_defaults(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if info.context is WITH_DEFAULTS:
            return written
        values = self.__dict__
        for name, default in _defaults(type(self)):
            value = values[name]
            if value is default or value == default:
                written.pop(name, None)
        return written


@cache
def _defaults(kind: type[CompactValue]) -> tuple[tuple[str, Any], ...]:
    """Return (name, default) of the fields that may be left out at their default."""
    return tuple(
        (name, field.get_default(call_default_factory=True))
        for name, field in kind.model_fields.items()
        if not field.is_required() and name != "kind"  # kind tells a union apart
    )


def in_file_form(value: Value, **options: Any) -> dict[str, Any]:
    """Return a value as JSON with the keys of files: ``depends-on``. ``options`` are those of
    ``model_dump``."""
    written = value.model_dump(mode="json", **options)
    return cast(dict[str, Any], _with_file_keys(value, written))


def _with_file_keys(value: object, written: object) -> object:
    """Rename the keys of values in what was written; keys of mappings stay."""
    if isinstance(value, Value) and isinstance(written, dict):
        own = cast(dict[str, object], written)
        return {
            kebab(key): _with_file_keys(getattr(value, key, None), part)
            for key, part in own.items()
        }
    if isinstance(value, dict) and isinstance(written, dict):
        parts, own = cast(dict[str, object], value), cast(dict[str, object], written)
        return {key: _with_file_keys(parts.get(key), part) for key, part in own.items()}
    if isinstance(value, tuple) and isinstance(written, list):
        pairs = zip(cast(tuple[object, ...], value), cast(list[object], written), strict=True)
        return [_with_file_keys(part, text) for part, text in pairs]
    return written


def build_all() -> None:
    """Build the validators of all values now, outside of workflows: else the first workflow task
    would pay for it. A validator that can't be built raises at its first use."""
    kinds: list[type[Value]] = [Value]
    for kind in kinds:
        kinds += kind.__subclasses__()
        kind.model_rebuild(raise_errors=False)


WorkflowId = Annotated[str, StringConstraints(max_length=1000)]
"""Temporal refuses longer ids, so a signal to such an id would always fail."""

Name = Annotated[str, StringConstraints(max_length=1000)]
"""A name or an id that workflows carry from run to run."""

AgentId = Annotated[str, StringConstraints(max_length=200)]
"""The id of an agent. Ids of activities contain it."""

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(value: object) -> object:
    """Convert ``"1h30m"`` or a number of seconds to a timedelta; pydantic judges anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        if isinstance(value, int | float):
            return timedelta(seconds=value)
        text = value.strip().lower()
        matches = list(_DURATION.finditer(text))
        if matches and "".join(match.group() for match in matches) == text:
            return timedelta(seconds=sum(float(m["number"]) * _SECONDS[m["unit"]] for m in matches))
    except OverflowError as error:  # pydantic reports a ValueError, anything else would escape it
        raise ValueError("is too long") from error
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(lambda value: value.total_seconds(), return_type=float),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}],
            "description": "seconds, or a text like 500ms, 30s, 5m, 2h, 1d, 1h30m",
        }
    ),
]
"""A length of time: seconds as a number, or ``500ms``, ``30s``, ``5m``, ``2h``, ``1d``, ``1h30m``.
Written as seconds."""
