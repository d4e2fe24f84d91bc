"""The types of the fields of a service file, each with its rule and its message."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import CoreSchema, no_info_after_validator_function

SIZE_LIMIT = 2**40
"""MB. More than any machine has, and an integer that every client can represent."""


def field_error(message: str, fix: str = "") -> PydanticCustomError:
    """Return the error for a validator to raise; ``complaints`` converts it into a Reason."""
    return PydanticCustomError("wrong", "{message}", {"message": message, "fix": fix})


@dataclass(frozen=True, slots=True)
class Shape:
    """A text that must match the whole ``pattern``; ``message`` describes the rule."""

    pattern: str
    message: str
    fix: str = ""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$"}

    def _check(self, value: str) -> str:
        if re.fullmatch(self.pattern, value) is None:
            raise field_error(self.message, self.fix)
        return value


Text = Annotated[str, Shape(r"[\s\S]*\S[\s\S]*", "must not be empty")]

PathElement = Annotated[
    str,
    Shape(
        "[A-Za-z0-9][A-Za-z0-9_-]*",
        "must be one path element: letters and digits first, then also _ and -",
        "for example data",
    ),
]

RelativePath = Annotated[
    str,
    Shape(
        r"(?!/)(?!(?:.*/)?\.\.(?:/|$)).*[^/\s].*",
        "must be a path inside the sandbox: relative, without ..",
        "for example conf/app.conf",
    ),
]

SecretFile = Annotated[
    str,
    Shape(
        r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[A-Za-z0-9._/-]+",
        "must be a relative path of letters, digits and . _ - /",
        "for example certs/key.pem",
    ),
]

AbsolutePath = Annotated[str, Shape("/.*", "must be an absolute path", "start it with /")]

Shell = Annotated[
    str,
    Shape(
        r"auto|[a-z][a-z0-9_-]*|/\S+",
        "must be the name of a shell or an absolute path",
        "for example bash or /bin/sh",
    ),
]

EnvKey = Annotated[
    str,
    Shape(r"[^=\s\x00]+", "must be the name of an environment variable", "for example PORT_HTTP"),
]

Profile = Annotated[
    str, Shape("[A-Za-z0-9_.-]{1,128}", "must have 1 to 128 letters, digits or _ . -")
]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Upper = BeforeValidator(_upper)
"""Converts to upper case, before an enumeration."""


def _pairs(separator: str, sign: str, *, may_be_blank: bool) -> Callable[[object], object]:
    """Return a validator that reads ``k:v,k:v`` or ``k=v;k=v``. A mapping stays as it is.

    ``may_be_blank``: the text, or the part after its last separator, may have no pair.
    """

    def read(value: object) -> object:
        if not isinstance(value, str):
            return _texts(value)
        pairs: dict[str, str] = {}
        items = value.split(separator)
        if may_be_blank and not items[-1].strip():
            items.pop()
        for item in items:
            key, found, entry = item.partition(sign)
            if not found or not key.strip() or (sign == "=" and "=" in entry):
                raise field_error(
                    f"{item.strip()!r} is not key{sign}value",
                    f"write k1{sign}v1{separator}k2{sign}v2",
                )
            pairs[key.strip()] = entry.strip()
        return pairs

    return read


def _texts(value: object) -> object:
    """Convert null in a mapping into an empty text."""
    if not isinstance(value, Mapping):
        return value
    entries = cast(Mapping[object, object], value)
    return {key: "" if entry is None else entry for key, entry in entries.items()}


_PAIRS_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}
)

Labels = Annotated[
    dict[str, str], BeforeValidator(_pairs(",", ":", may_be_blank=False)), _PAIRS_SCHEMA
]
"""``key:value,key:value``, not blank; values may contain more colons."""

Options = Annotated[
    dict[str, str], BeforeValidator(_pairs(";", "=", may_be_blank=True)), _PAIRS_SCHEMA
]
"""``key=value;key=value``, each with exactly one ``=``; the last may end with ``;``."""

Environment = Annotated[
    dict[EnvKey, str],
    BeforeValidator(_texts),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        }
    ),
]
"""Environment variables; null is an empty text."""

Megabytes = Annotated[int, Field(gt=0, le=SIZE_LIMIT)]
Cores = Annotated[float, Field(gt=0, le=1_000_000)]
Seconds = Annotated[float, Field(ge=0, le=10**9)]
PortNumber = Annotated[int, Field(ge=0, le=65535)]

UNLIMITED: Literal["unlimited"] = "unlimited"


def _limit(number: type[int] | type[float]) -> Callable[[object], object]:
    def read(value: object) -> object:
        if value == UNLIMITED:
            return value
        try:
            amount = number(cast(Any, value))
        except (TypeError, ValueError, OverflowError):
            raise field_error(f"must be a number or {UNLIMITED}") from None
        if not 0 < amount < SIZE_LIMIT:
            raise field_error("must be more than 0", f"write a greater number, or {UNLIMITED}")
        return amount

    return read


def _limit_schema(number: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"anyOf": [{"type": number, "exclusiveMinimum": 0}, {"const": UNLIMITED}]}
    )


CpuLimit = Annotated[
    float | Literal["unlimited"], BeforeValidator(_limit(float)), _limit_schema("number")
]
MemoryLimit = Annotated[
    int | Literal["unlimited"], BeforeValidator(_limit(int)), _limit_schema("integer")
]
