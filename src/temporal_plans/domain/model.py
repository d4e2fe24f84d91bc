"""The base of every value in this project, and the field types they share.

Values are immutable and forbid unknown keys, so that a typo in a file or in a message is told
instead of dropped. Keys are written kebab-case in files and snake_case in Python and JSON; both
are accepted everywhere.
"""

import re
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Self

from pydantic import (
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
    """``task_queue`` as it is written in files: ``task-queue``."""
    return name.replace("_", "-")


class Value(BaseModel):
    """An immutable value with known keys only.

    Its validator is built at its first use: most commands use few of the values that they import.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=kebab,
        defer_build=True,
    )

    def but(self, **changes: Any) -> Self:
        """A copy with some fields changed. Nothing is validated again."""
        return self.model_copy(update=changes)


WITH_DEFAULTS = {"defaults": True}
"""Give this as the context of a dump that programs read: every field is then written."""


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
        for name, alias, default in _defaults(type(self)):
            value = values[name]
            if value is default or value == default:
                written.pop(name, None) if name in written else written.pop(alias, None)
        return written


@cache
def _defaults(kind: type[CompactValue]) -> tuple[tuple[str, str, Any], ...]:
    """Which fields may be left out, by their name and alias, and at which values."""
    return tuple(
        (name, field.alias or name, field.get_default(call_default_factory=True))
        for name, field in kind.model_fields.items()
        if not field.is_required() and name != "kind"  # kind tells a union apart
    )


def build_all() -> None:
    """Build the validators of all values that there are, now: in a workflow it would be the first
    one's time. One that can't be built says so at its first use."""
    kinds: list[type[Value]] = [Value]
    for kind in kinds:
        kinds += kind.__subclasses__()
        kind.model_rebuild(raise_errors=False)


WorkflowId = Annotated[str, StringConstraints(max_length=1000)]
"""Temporal takes no longer ones, and a workflow that signals one is refused for ever."""

AgentId = Annotated[str, StringConstraints(max_length=200)]
"""The end of a task queue's name."""

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(value: object) -> object:
    """``"1h30m"`` or a number of seconds as a timedelta; anything else is left to pydantic."""
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
        raise ValueError("is longer than can be counted") from error
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
