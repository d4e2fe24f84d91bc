"""The kinds of text that fields of a service file take, each with its rule and its words."""

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

MAX_SIZE = 2**40
"""MB. Beyond any machine, and far inside what all clients can count."""


def wrong(message: str, fix: str = "") -> PydanticCustomError:
    """The error that a validator raises; ``loading.complaints`` makes a Problem of it."""
    return PydanticCustomError("wrong", "{message}", {"message": message, "fix": fix})


@dataclass(frozen=True, slots=True)
class Shape:
    """Text that must match ``pattern`` whole; ``message`` says so in words."""

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
            raise wrong(self.message, self.fix)
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
"""Before an enumeration that is written in any case."""


def _pairs(separator: str, sign: str) -> Callable[[object], object]:
    """Reads ``k:v,k:v`` and ``k=v;k=v``. A mapping is taken as it is."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            return _texts(value)
        pairs: dict[str, str] = {}
        for item in value.split(separator) if value.strip() else ():
            key, found, entry = item.partition(sign)
            if not found or not key.strip() or (sign == "=" and "=" in entry):
                raise wrong(
                    f"{item.strip()!r} is not key{sign}value",
                    f"write k1{sign}v1{separator}k2{sign}v2",
                )
            pairs[key.strip()] = entry.strip()
        return pairs

    return read


def _texts(value: object) -> object:
    """A mapping with null as the empty text."""
    if not isinstance(value, Mapping):
        return value
    entries = cast(Mapping[object, object], value)
    return {key: "" if entry is None else entry for key, entry in entries.items()}


_PAIRS_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]}
)

Labels = Annotated[dict[str, str], BeforeValidator(_pairs(",", ":")), _PAIRS_SCHEMA]
"""``key:value,key:value``; values may contain more colons."""

Options = Annotated[dict[str, str], BeforeValidator(_pairs(";", "=")), _PAIRS_SCHEMA]
"""``key=value;key=value``, each with exactly one ``=``."""

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
"""Environment variables; null is the empty text."""

Megabytes = Annotated[int, Field(gt=0, le=MAX_SIZE)]
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
            raise wrong(f"must be a number or {UNLIMITED}") from None
        if not 0 < amount < MAX_SIZE:
            raise wrong("must be more than 0", f"or write {UNLIMITED}")
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
