"""Files that are named on the command line, and the values that service files are rendered with."""

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from temporal_plans.cli.pairs import pairs
from temporal_plans.cli.unused import tell_unused
from temporal_plans.domain.backend_support import unsupported
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.loading.env_file import parse_env_file
from temporal_plans.loading.plans import read_document
from temporal_plans.loading.service import load_service, read_text

_NEEDS_VALUE = "the template needs this value"  # in the words of loading.mustache
_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_-]+)["']?\s*:""", re.MULTILINE)


class FileKind(StrEnum):
    SERVICE = "service"
    PLAN = "plan"


def service_file(
    path: Path, given: Iterable[str] | None, files: Iterable[Path] | None
) -> ServiceSpec:
    """The service in a file, rendered with what was given. Raises SpecError, typer.BadParameter."""
    return rendered(path, environment(path, given, files))


def rendered(path: Path, values: Mapping[str, str]) -> ServiceSpec:
    """The service in a file, rendered with these values. Raises SpecError."""
    try:
        return load_service(path, values, backend=unsupported)
    except SpecError as error:
        if not any(problem.message == _NEEDS_VALUE for problem in error.problems):
            raise
        hint = Problem(path="", message="give values with -e NAME=VALUE or --values FILE")
        raise SpecError([*error.problems, hint], source=error.source) from error


def environment(
    service: Path, given: Iterable[str] | None, files: Iterable[Path] | None
) -> dict[str, str]:
    """The values for a service file: of the files in order, then those that were given singly. A
    note tells which of the latter it does not use.

    Raises SpecError for a file that is none of NAME=VALUE lines; typer.BadParameter for a value.
    """
    values: dict[str, str] = {}
    for path in files or ():
        values |= parse_env_file(read_text(path), source=path.name)
    singly = pairs(given or (), "-e")
    tell_unused(service, singly)
    return values | singly


def kind_of(path: Path) -> FileKind:
    """A service has pods, a plan has phases. Raises SpecError for a file with neither, or both.

    A service file need not be YAML before it is rendered, so its lines are looked at.
    """
    text = _text_of(path)
    found = _top_level_keys(text)
    if ("pods" in found) != ("phases" in found):
        return FileKind.SERVICE if "pods" in found else FileKind.PLAN
    both = "pods" in found
    if not both and "{{" not in text:
        read_document(text, path.name)  # where it is not even that, its syntax is the problem
    problem = Problem(
        path="",
        message="has both pods and phases" if both else "is neither a service nor a plan file",
        fix="a service file has `pods` at its top, a plan file `phases`",
    )
    raise SpecError([problem], source=path.name)


def expect(path: Path, wanted: FileKind) -> None:
    """Raises SpecError for a file of the other kind, with the command that takes it."""
    found = _top_level_keys(_text_of(path))
    if ("pods" in found) == ("phases" in found):
        return  # loading it says what is wrong
    kind = FileKind.SERVICE if "pods" in found else FileKind.PLAN
    if kind is not wanted:
        command = "deploy" if kind is FileKind.SERVICE else "run"
        problem = Problem(
            path="", message=f"this is a {kind} file", fix=f"use `temporal-plan {command}`"
        )
        raise SpecError([problem], source=path.name)


def _text_of(path: Path) -> str:
    text = read_text(path)
    if text.strip():
        return text
    fix = "write a service with `pods`, or a plan with `phases`"
    raise SpecError([Problem(path="", message="is empty", fix=fix)], source=path.name)


def _top_level_keys(text: str) -> set[str]:
    if text.lstrip().startswith("{"):
        try:
            document: object = json.loads(text)
        except ValueError:
            pass
        else:
            return set(cast(dict[str, Any], document))
    return set(_TOP_LEVEL_KEY.findall(text))
