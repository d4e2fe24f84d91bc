"""The command `temporal-plan`. The `temporal` CLI runs it as a command of its own: `temporal plan`.

Exit codes: 0 done, 1 failed or refused, 2 usage.
"""

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Annotated

import typer

from temporal_plans.cli.commands import (
    auditing,
    configurations,
    deploying,
    files,
    fleet,
    objects,
    operating,
    packages,
    pods,
    processes,
    reading,
    removing,
    scheduling,
)
from temporal_plans.cli.inputs.completion import COMPLETE_VARIABLE
from temporal_plans.cli.inputs.flags import ConnectionFlags, with_connection_flags

app = typer.Typer(
    name="temporal-plan",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # it would make every start slower by half
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"temporal-plan {version('temporal-plans')}")
        raise typer.Exit


@app.callback()
@with_connection_flags
def plan(
    ctx: typer.Context,
    flags: ConnectionFlags,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    """Deploy and operate services as durable plans on Temporal.

    A plan has phases, a phase has steps. Plans can be watched, paused, continued, repeated and
    forced; their progress and every command survive the end of any process.

    Connection options may also follow the command. Exit codes: 0 done, 1 failed or
    refused, 2 usage.
    """
    ctx.obj = flags


_COMMAND_MODULES = (
    processes,
    files,
    deploying,
    configurations,
    reading,
    auditing,
    pods,
    operating,
    scheduling,
    fleet,
    objects,
    removing,
    packages,
)

for _module in _COMMAND_MODULES:
    _module.add_to(app)


def main() -> None:
    """Run the process `temporal-plan`."""
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if "temporalio" in sys.modules:
        # Threads of Temporal's SDK may still run. One that returns to Python during its shutdown
        # sometimes aborts the process, with an exit code that is not ours.
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line in this process; return its exit code."""
    if arguments and arguments[0] in _COMPLETIONS_WANTED:
        return complete(arguments[1:])
    try:
        _app_for(arguments)(args=list(arguments), prog_name="temporal-plan")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception as error:
        from temporal_plans.cli.failure import known_failure
        from temporal_plans.cli.terminal.output import print_error

        known = known_failure(error, arguments)
        if known is None:
            traceback.print_exc()
            return 1
        text, code = known
        print_error(text)
        return code
    return 0


_COMPLETIONS_WANTED = ("__complete", "__completeNoDesc")
"""What the `temporal` CLI puts before an unfinished command line of `temporal plan`."""

_NO_FILES = ":4"
"""The end of an answer to it: complete with these words only, not with files."""


def complete(words: Sequence[str]) -> int:
    """Print the completions of the last word, a line each, as the `temporal` CLI reads them."""
    os.environ |= {
        COMPLETE_VARIABLE: "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": _unfinished(words),
    }
    with suppress(SystemExit):
        app(args=[], prog_name="temporal-plan")
    print(_NO_FILES, flush=True)
    return 0


def _unfinished(words: Sequence[str]) -> str:
    """Return the command line as a shell shows it; a blank at its end begins a new word."""
    *whole, last = ("temporal-plan", *words) if words else ("temporal-plan", "")
    return f"{shlex.join(whole)} {shlex.quote(last) if last else ''}"


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return an app with only the command that the arguments begin with, or else the whole app.

    Typer builds every command of an app from its function, which takes a tenth of a second.
    """
    name = next(iter(arguments), "")
    commands = [command for command in app.registered_commands if command.name == name]
    groups = [group for group in app.registered_groups if group.name == name]
    if not commands and not groups:
        return app
    partial = copy(app)
    partial.registered_commands, partial.registered_groups = commands, groups
    return partial
