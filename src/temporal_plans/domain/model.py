"""The base of every value in this project, and the field types they share.

Values are immutable and forbid unknown keys, so that a typo in a file or in a message is told
instead of dropped. Keys are written kebab-case in files and snake_case in Python and JSON; both
are accepted everywhere.
"""

import re
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)


def kebab(name: str) -> str:
    """``task_queue`` as it is written in files: ``task-queue``."""
    return name.replace("_", "-")


class Value(BaseModel):
    """An immutable value with known keys only."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=kebab
    )

    def but(self, **changes: Any) -> Self:
        """A copy with some fields changed. Nothing is validated again."""
        return self.model_copy(update=changes)


class CompactValue(Value):
    """A value that leaves out fields at their default when written.

    For the values that a plan has thousands of: a tree of 2,000 steps must fit one payload.
    """

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            key = name if name in written else field.alias
            if name == "kind" or key is None or key not in written or field.is_required():
                continue  # kind tells a union apart
            if getattr(self, name) == field.get_default(call_default_factory=True):
                del written[key]
        return written


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
