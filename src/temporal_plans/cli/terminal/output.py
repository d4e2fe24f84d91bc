"""Output: coloured on a terminal, plain text in a pipe, without control characters of others.

Rich decides about colour (a terminal, and no NO_COLOR). Lines are never cut or wrapped here.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.text import Text

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import WITH_DEFAULTS

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u2028\u2029\u202a-\u202e\u2066-\u2069"  # end a line, or change the direction of writing
    r"\ud800-\udfff]"  # bytes that were not UTF-8
)

_STYLES: dict[str, str] = {
    Status.COMPLETE: "green",
    Status.IN_PROGRESS: "cyan",
    Status.STARTING: "cyan",
    Status.STARTED: "cyan",
    Status.PREPARED: "cyan",
    Status.WAITING: "yellow",
    Status.DELAYED: "magenta",
    Status.PENDING: "dim",
    Status.ERROR: "bold red",
    TaskState.RUNNING: "green",
    TaskState.FINISHED: "green",
    TaskState.FAILED: "bold red",
    TaskState.LOST: "bold red",
    "PAUSED": "yellow",
    "PAUSING": "yellow",
    "DECOMMISSIONING": "magenta",
    "DECOMMISSIONED": "dim",
    "ALIVE": "green",
    "SUCCEEDED": "green",
    "CANCELLED": "magenta",
    "UNREACHABLE": "yellow",
    "UNKNOWN": "bold red",
}


@cache
def console() -> Console:
    """Return the console of standard output."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def error_console() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Replace control characters: texts of tasks and users must not control a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return a text without its line breaks, which would break a tree or a list."""
    return printable(" ".join(text.split()))


def coloured(status: str) -> Text:
    """Return a status in its colour."""
    return Text(status, style=_STYLES.get(status, ""))


def print_line(line: str | Text = "") -> None:
    console().print(printable(line) if isinstance(line, str) else line)


def print_lines(lines: Iterable[str | Text]) -> None:
    for line in lines:
        print_line(line)


def print_text(text: str) -> None:
    """Print a text byte for byte into a pipe or a file; a terminal gets no control characters."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write(printable(text))
    else:
        sys.stdout.buffer.write(text.encode())


def print_error(text: str) -> None:
    """Print an error on standard error."""
    error_console().print(Text.assemble(("Error: ", "bold red"), printable(text)))


def print_note(text: str) -> None:
    """Print a note on standard error."""
    error_console().print(Text.assemble(("Note: ", "bold yellow"), printable(text)))


def print_json(value: BaseModel | Sequence[BaseModel] | object) -> None:
    """Print a message, or values that contain messages, as indented JSON."""
    if isinstance(value, BaseModel):
        text = value.model_dump_json(indent=2, context=WITH_DEFAULTS)
    else:
        text = json.dumps(value, indent=2, default=_jsonable, ensure_ascii=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()  # a pipe gets what --watch prints at once


def written(message: BaseModel) -> dict[str, Any]:
    """Return a message as JSON has it."""
    return message.model_dump(mode="json", context=WITH_DEFAULTS)


def _jsonable(value: object) -> object:
    if isinstance(value, BaseModel):
        return written(value)
    if isinstance(value, datetime):
        return to_jsonable_python(value)  # as messages write it
    raise TypeError(f"{type(value).__name__} has no JSON form")
