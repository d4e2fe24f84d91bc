"""Files named on the command line, and the values that service files are rendered with."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from temporal_plans.cli.inputs.pairs import pairs
from temporal_plans.cli.inputs.unused import warn_unused
from temporal_plans.cli.terminal.output import print_note
from temporal_plans.domain.services.backend_support import unsupported, without_effect
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Code, Reason, SpecError
from temporal_plans.loading.plans import read_document
from temporal_plans.loading.services.service import load_service
from temporal_plans.loading.text.env_file import parse_env_file
from temporal_plans.loading.text.files import read_text

_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_-]+)["']?\s*:""", re.MULTILINE)

_ARCHIVE_SUFFIXES = (".tgz", ".tar.gz")


class FileKind(StrEnum):
    SERVICE = "service"
    PLAN = "plan"
    PACKAGE = "package"


@dataclass(frozen=True)
class ServiceFileOptions:
    """A service file as the command line names it. ``values`` are its values one by one, ``files``
    those of files; ``lenient`` ignores unknown keys, ``verbose`` names all values without use."""

    path: Path
    values: Iterable[str] | None = None
    files: Iterable[Path] | None = None
    lenient: bool = False
    verbose: bool = False


def service_file(file: ServiceFileOptions) -> ServiceSpec:
    """Load a service file with the given values. Raises SpecError, typer.BadParameter."""
    return rendered(file, environment(file))


def rendered(file: ServiceFileOptions, values: Mapping[str, str]) -> ServiceSpec:
    """Load a service file, rendered with these values. Prints a note for each field without effect
    and each key that is ignored. Raises SpecError."""
    try:
        spec = load_service(
            file.path,
            values,
            backend=unsupported,
            on_unknown_key=_note_ignored if file.lenient else None,
        )
    except SpecError as error:
        if error.refusal.code != Code.VALUES_MISSING:
            raise
        hint = Reason(field="", problem="give values with -e NAME=VALUE or --values FILE")
        raise SpecError([*error.reasons, hint], source=error.source) from error
    for reason in without_effect(spec):
        print_note(str(reason))
    return spec


def _note_ignored(key: Reason) -> None:
    print_note(f"ignored: {key}")


def environment(file: ServiceFileOptions) -> dict[str, str]:
    """Return the values for a service file: those of the files in order, then the single ones.
    Prints a note on single values that the service file does not use.

    Raises SpecError for a file with other lines than NAME=VALUE; typer.BadParameter for a value.
    """
    values: dict[str, str] = {}
    for path in file.files or ():
        values |= parse_env_file(read_text(path), source=path.name)
    singly = pairs(file.values or (), "-e")
    warn_unused(file.path, singly, verbose=file.verbose)
    return values | singly


def kind_of(path: Path) -> FileKind:
    """Return the kind of a file: a service has pods, a plan has phases, a package is a folder or
    an archive.

    Reads lines, because a service file need not be YAML before it is rendered. Raises SpecError for
    a file with neither pods nor phases, or both.
    """
    if path.is_dir() or path.name.endswith(_ARCHIVE_SUFFIXES):
        return FileKind.PACKAGE
    text = _text_of(path)
    found = _top_level_keys(text)
    if ("pods" in found) != ("phases" in found):
        return FileKind.SERVICE if "pods" in found else FileKind.PLAN
    both = "pods" in found
    if not both and "{{" not in text:
        read_document(text, path.name)  # raises when the file is not even a document
    problem = Reason(
        field="",
        problem="has both pods and phases" if both else "is neither a service nor a plan file",
        fix="a service file has `pods` at its top, a plan file `phases`",
    )
    raise SpecError([problem], source=path.name)


def expect(path: Path, expected: FileKind) -> None:
    """Raise SpecError for a file of the other kind; it names the command for that kind."""
    found = _top_level_keys(_text_of(path))
    if ("pods" in found) == ("phases" in found):
        return  # loading the file reports what is wrong
    kind = FileKind.SERVICE if "pods" in found else FileKind.PLAN
    if kind is not expected:
        command = "deploy" if kind is FileKind.SERVICE else "run"
        problem = Reason(
            field="", problem=f"this is a {kind} file", fix=f"use `temporal-plan {command}`"
        )
        raise SpecError([problem], source=path.name)


def _text_of(path: Path) -> str:
    text = read_text(path)
    if text.strip():
        return text
    fix = "write a service with `pods`, or a plan with `phases`"
    raise SpecError([Reason(field="", problem="is empty", fix=fix)], source=path.name)


def _top_level_keys(text: str) -> set[str]:
    if text.lstrip().startswith("{"):
        try:
            document: object = json.loads(text)
        except ValueError:
            pass
        else:
            return set(cast(dict[str, Any], document))
    return set(_TOP_LEVEL_KEY.findall(text))
