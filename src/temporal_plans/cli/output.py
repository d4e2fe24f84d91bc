"""Writing to the terminal: colour there, plain text in a pipe, never another's control characters.

Rich decides about colour (a terminal, and no NO_COLOR); lines are never cut or wrapped by us.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from temporal_plans.domain.model import WITH_DEFAULTS
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u2028\u2029\u202a-\u202e\u2066-\u2069"  # end a line, or turn the writing's direction
    r"\ud800-\udfff]"  # bytes that were no UTF-8
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
    "UNREACHABLE": "yellow",
}


@cache
def console() -> Console:
    """Standard output."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def error_console() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """The text without control characters: what tasks and users write must not steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def coloured(status: str) -> Text:
    """A status in its colour."""
    return Text(status, style=_STYLES.get(status, ""))


def say(line: str | Text = "") -> None:
    console().print(printable(line) if isinstance(line, str) else line)


def say_all(lines: Iterable[str | Text]) -> None:
    for line in lines:
        say(line)


def complain(text: str) -> None:
    """One complaint on standard error."""
    error_console().print(Text.assemble(("Error: ", "bold red"), printable(text)))


def note(text: str) -> None:
    """Something to know, on standard error; the command goes on."""
    error_console().print(Text.assemble(("Note: ", "bold yellow"), printable(text)))


def print_json(value: BaseModel | Sequence[BaseModel] | object) -> None:
    """Messages and what is made of them, as indented JSON."""
    if isinstance(value, BaseModel):
        text = value.model_dump_json(indent=2, context=WITH_DEFAULTS)
    else:
        text = json.dumps(value, indent=2, default=_jsonable, ensure_ascii=False)
    sys.stdout.write(text + "\n")


def _jsonable(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", context=WITH_DEFAULTS)
    raise TypeError(f"{type(value).__name__} has no JSON form")
