"""Files that are named on the command line, and the values that service files are rendered with."""

import json
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from temporal_plans.cli.pairs import pairs
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.loading.env_file import parse_env_file
from temporal_plans.loading.service import read_text

_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_-]+)["']?\s*:""", re.MULTILINE)


def environment(given: Iterable[str] | None, files: Iterable[Path] | None) -> dict[str, str]:
    """The values for a service file: of the files in order, then those that were given singly.

    Raises SpecError for a file that is none of NAME=VALUE lines; typer.BadParameter for a value.
    """
    values: dict[str, str] = {}
    for path in files or ():
        values |= parse_env_file(read_text(path), source=path.name)
    return values | pairs(given or (), "-e")


class FileKind(StrEnum):
    SERVICE = "service"
    PLAN = "plan"


def kind_of(path: Path) -> FileKind:
    """A service has pods, a plan has phases. Raises SpecError for a file with neither, or both.

    A service file need not be YAML before it is rendered, so its lines are looked at.
    """
    text = read_text(path)
    keys = _json_keys(text) if text.lstrip().startswith("{") else None
    found = set(_TOP_LEVEL_KEY.findall(text)) if keys is None else keys
    if ("pods" in found) != ("phases" in found):
        return FileKind.SERVICE if "pods" in found else FileKind.PLAN
    problem = Problem(
        path="",
        message="is neither a service file nor a plan file"
        if "pods" not in found
        else "has both pods and phases",
        fix="a service file has `pods` at its top, a plan file `phases`",
    )
    raise SpecError([problem], source=path.name)


def _json_keys(text: str) -> set[str] | None:
    try:
        document: object = json.loads(text)
    except ValueError:
        return None
    return set(cast(dict[str, Any], document)) if isinstance(document, dict) else set()
