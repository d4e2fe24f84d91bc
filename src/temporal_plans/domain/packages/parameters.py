"""Parameters of packages: definitions, and values, which are all stored as text."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import cast

from pydantic import Field

from temporal_plans.domain.packages.value import ENTRIES_LIMIT, Flag, PackageValue, Text
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason

Decode = Callable[[str], object]
"""Reads the text of a list or mapping; ``loading.packages`` has the function. Raises ValueError,
whose text is the problem."""


class ParameterType(StrEnum):
    """The types of values. A parameter without a type has any text."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    MAP = "map"


STRUCTURED: Collection[str] = (ParameterType.ARRAY, ParameterType.MAP)
"""The types whose values templates see as a list or a mapping instead of a text."""

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?")
_INT64 = 2**63


class Parameter(PackageValue):
    """The definition of a parameter, an entry of ``params.yaml``."""

    name: Text = Field(description="Its name in templates: `.Params.NAME`.")
    display_name: Text = Field(default="", description="Its name for people.")
    description: Text = Field(default="", description="What it does.")
    hint: Text = Field(default="", description="How to choose a value.")
    type: Text = Field(
        default="",
        description="`string`, `integer`, `number`, `boolean`, `array` or `map`. "
        "Without it any text is a value.",
    )
    required: Flag = Field(
        default=True, description="Whether a value must be given where there is no default."
    )
    default: Text | None = Field(
        default=None,
        description="The value without one given. Of an array or a map: YAML.",
    )
    trigger: Text = Field(
        default="", description="The plan that a change of the value starts; else `update`."
    )
    immutable: Flag = Field(
        default=False, description="Whether the value is fixed from the installation on."
    )
    secret: Flag = Field(
        default=False,
        description="Whether the value is a secret: it is given in a file, and never shown.",
    )
    enum: tuple[Text, ...] | None = Field(default=None, description="The values to choose from.")
    group: Text = Field(default="", description="One of `groups`; for forms.")
    advanced: Flag = Field(default=False, description="Whether most people can leave it alone.")

    def raw(self, given: Mapping[str, str]) -> str:
        """Return the text in effect: the given one, else the default, else an empty one."""
        return given.get(self.name, self.default if self.default is not None else "")

    def fault(self, text: str, decode: Decode) -> str | None:
        """Return why a text can't be its value, ready to stand behind its name; None if it can.

        In this order: required, type, enum. An empty text is a value unless one is required.
        """
        if not text:
            missing = self.required and self.default is None
            return "is required but has no value" if missing else None
        return self.type_fault(text, decode) or self._enum_fault(text)

    def type_fault(self, text: str, decode: Decode) -> str | None:
        """Return why a text is not of the parameter's type; None if it is."""
        match self.type:
            case "" | ParameterType.STRING:
                return None
            case ParameterType.INTEGER:
                whole = _INTEGER.fullmatch(text) and len(text) < 30
                fits = whole and -_INT64 <= int(text) < _INT64
                return None if fits else "must be a whole number of 64 bits"
            case ParameterType.NUMBER:
                number = _NUMBER.fullmatch(text) and math.isfinite(float(text))
                return None if number else "must be a finite number"
            case ParameterType.BOOLEAN:
                return None if boolean(text) is not None else "must be true or false"
            case ParameterType.ARRAY | ParameterType.MAP:
                return _structure_fault(self.type, text, decode)
            case _:
                return f"has the unknown type {self.type}"

    def seen(self, text: str, decode: Decode) -> object:
        """Return the value as templates see it: a list or mapping for these types (None for an
        empty text), in which all numbers are floats; else the text, of numbers and booleans,
        too. Raises ValueError for a text that can't be decoded."""
        return as_floats(decode(text)) if self.type in STRUCTURED else text

    def _enum_fault(self, text: str) -> str | None:
        if self.enum is None or text in self.enum:
            return None
        return f"must be one of {', '.join(choice.strip() for choice in self.enum)}"


class Group(PackageValue):
    """A group of parameters, for forms."""

    name: Text = Field(description="The name that parameters refer to.")
    display_name: Text = Field(default="", description="Its name for people.")
    description: Text = Field(default="", description="What its parameters are about.")
    prio: int = Field(default=0, description="The order of groups, lowest first.")


class Parameters(PackageValue):
    """The file ``params.yaml``."""

    api_version: Text = ""
    groups: tuple[Group, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="Groups of parameters, for forms."
    )
    parameters: tuple[Parameter, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The parameters."
    )


def boolean(text: str) -> bool | None:
    """Return what a text of a boolean parameter, or of the parameter of a Toggle, means; None when
    it is neither true nor false."""
    return True if text in _TRUE else False if text in _FALSE else None


def seen_by_templates(
    parameters: Collection[Parameter], given: Mapping[str, str], decode: Decode
) -> dict[str, object]:
    """Return `.Params` of templates: a value for every defined parameter, by name.

    Given values of parameters that are not defined are left out. Check with ``value_faults`` first:
    raises ValueError for a text that can't be decoded.
    """
    return {one.name: one.seen(one.raw(given), decode) for one in parameters}


def value_faults(
    parameters: Collection[Parameter], given: Mapping[str, str], decode: Decode
) -> Iterator[Reason]:
    """Yield every reason against installing with the given values, the defaults included."""
    known = {one.name for one in parameters}
    for name, text in given.items():
        if name not in known:
            yield Reason(
                field=name,
                problem="is not a parameter of the package",
                value=text,
                fix=suggestion(name, known),
            )
    for one in parameters:
        text = one.raw(given)
        if problem := one.fault(text, decode):
            fix = "" if text else f"give a value with -p {one.name}=VALUE"
            yield Reason(field=one.name, problem=problem, value=text or None, fix=fix)


def immutable_faults(
    parameters: Collection[Parameter], before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Reason]:
    """Yield a reason for each immutable parameter whose value in effect would change."""
    for one in parameters:
        old, new = one.raw(before), one.raw(after)
        if one.immutable and old != new:
            yield Reason(
                field=one.name,
                problem="is immutable, and would change",
                value=new,
                fix=f"keep {old!r}, or install the package again under another name",
            )


def as_floats(value: object) -> object:
    """Return a value of YAML with its integers as floats."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        return [as_floats(item) for item in cast(list[object], value)]
    if isinstance(value, dict):
        entries = cast(dict[str, object], value)
        return {key: as_floats(entry) for key, entry in entries.items()}
    return value


def _structure_fault(kind: str, text: str, decode: Decode) -> str | None:
    try:
        value = decode(text)
    except ValueError as error:
        return f"must be YAML: {error}"
    if value is None:
        return None
    if kind == ParameterType.ARRAY:
        return None if isinstance(value, list) else "must be a YAML list"
    return None if isinstance(value, dict) else "must be a YAML mapping"
