"""Pieces of the plan file that builders write down."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

Settings = Mapping[str, Any]
"""Fields as plan files name them, without those of which nothing was said."""


def given(**settings: Any) -> Settings:
    """Those that are not None, named as in files. Their values are left alone: inside an input,
    None is a value."""
    return {name.replace("_", "-"): value for name, value in settings.items() if value is not None}


@dataclass(frozen=True)
class Written:
    """A value as JSON, or the ``fault`` for which it can't be."""

    value: Any = None
    fault: str = ""


def as_json(value: Any) -> Written:
    """Written as Temporal's pydantic converter would: dataclasses, models, dates and the like."""
    try:
        plain = to_jsonable_python(value)
        json.dumps(plain, allow_nan=False)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return Written(fault=str(error))
    return Written(plain)
