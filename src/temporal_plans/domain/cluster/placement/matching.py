"""Matching one value of an agent: its hostname, zone, region or an attribute (behaviour 9.8)."""

import re
from decimal import Decimal
from typing import Literal

from pydantic import field_validator, model_validator

from temporal_plans.domain.values import patterns
from temporal_plans.domain.values.model import CompactValue

_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?")


class Matcher(CompactValue):
    """``exact`` compares numbers too: ``1`` equals ``1.0`` and ``1.0004`` (three decimals).

    ``regex`` must match the whole value; an invalid one is a ValueError.
    """

    kind: Literal["any", "exact", "not-exact", "regex"] = "any"
    text: str = ""

    @field_validator("kind", mode="before")
    @classmethod
    def _lower(cls, kind: object) -> object:
        return kind.lower() if isinstance(kind, str) else kind

    @model_validator(mode="after")
    def _compiles(self) -> "Matcher":
        if self.kind == "regex":
            try:
                patterns.check(self.text)
            except patterns.PatternError as error:
                raise ValueError(f"{self.text!r} is not a regular expression: {error}") from None
        return self

    def matches(self, value: str) -> bool:
        match self.kind:
            case "any":
                return True
            case "exact":
                return _equal(self.text, value)
            case "not-exact":
                return not _equal(self.text, value)
            case "regex":
                return patterns.matches(self.text, value)

    def __str__(self) -> str:
        match self.kind:
            case "any":
                return "is anything"
            case "exact":
                return f"is {self.text!r}"
            case "not-exact":
                return f"is not {self.text!r}"
            case "regex":
                return f"matches {self.text!r}"


def _equal(left: str, right: str) -> bool:
    if left == right:
        return True
    if not (_NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)):
        return False
    step = Decimal("0.001")
    return Decimal(left).quantize(step) == Decimal(right).quantize(step)
