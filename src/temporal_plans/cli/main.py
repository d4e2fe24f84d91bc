"""The command `temporal-plan`. The `temporal` CLI runs it as a command of its own: `temporal plan`.

Exit codes: 0 done, 1 failed or refused, 2 usage.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from copy import copy
from typing import Annotated

import typer

from temporal_plans.cli.commands import (
    configurations,
    deploying,
    files,
    operating,
    pods,
    processes,
    reading,
    removing,
    scheduling,
)
from temporal_plans.cli.flags import ConnectionFlags, with_connection_flags

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
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Say the version.")
    ] = False,
) -> None:
    """Deploy and operate services as durable plans on Temporal.

    A plan has phases, a phase has steps. Plans can be watched, paused, continued, repeated and
    forced; all they reached and all they were told outlives any process.

    Options of the connection may also stand behind the command. Exit codes: 0 done, 1 failed or
    refused, 2 usage.
    """
    ctx.obj = flags


_NOUNS = (
    processes,
    files,
    deploying,
    configurations,
    reading,
    pods,
    operating,
    scheduling,
    removing,
)

for _commands in _NOUNS:
    _commands.add_to(app)


def main() -> None:
    """The process `temporal-plan`."""
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    if "temporalio" in sys.modules:
        # The threads of Temporal's SDK may still be at work, and one that comes back while Python
        # takes itself down aborts the process, now and then, with a code that is not ours.
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line in this process; its exit code."""
    try:
        _asked_for(arguments)(args=list(arguments), prog_name="temporal-plan")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception as error:
        from temporal_plans.cli.failure import known_failure
        from temporal_plans.cli.output import complain

        known = known_failure(error)
        if known is None:
            traceback.print_exc()
            return 1
        text, code = known
        complain(text)
        return code
    return 0


def _asked_for(arguments: Sequence[str]) -> typer.Typer:
    """The app with nothing but the command that stands first; the whole one where none does.

    Typer makes all commands of an app from their functions, which takes a tenth of a second.
    """
    name = next(iter(arguments), "")
    commands = [one for one in app.registered_commands if one.name == name]
    groups = [one for one in app.registered_groups if one.name == name]
    if not commands and not groups:
        return app
    asked = copy(app)
    asked.registered_commands, asked.registered_groups = commands, groups
    return asked
