"""Parts of the plan document that builders make."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

Settings = Mapping[str, Any]
"""Fields by their names in plan files, without those that were not given."""


def given(**settings: Any) -> Settings:
    """Return the settings that are not None, by their names in plan files. None inside a value is
    kept."""
    return {name.replace("_", "-"): value for name, value in settings.items() if value is not None}


@dataclass(frozen=True)
class JsonResult:
    """A value as JSON, or the ``fault`` because of which it can't be converted."""

    value: Any = None
    fault: str = ""


def as_json(value: Any) -> JsonResult:
    """Convert a value as Temporal's pydantic converter does: dataclasses, models, dates and so
    on."""
    try:
        plain = to_jsonable_python(value)
        json.dumps(plain, allow_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return JsonResult(fault=str(error))
    return JsonResult(plain)
