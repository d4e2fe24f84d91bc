"""The commands of `temporal plan`, by what they are for. What is slow to import is imported inside
them: `temporal plan --help` must not load Temporal's SDK."""

from collections.abc import Callable

import typer

from temporal_plans.cli.flags import connected, examples

Command = Callable[..., None]


def offer(
    app: typer.Typer,
    command: Command,
    name: str,
    *lines: str,
    aliases: tuple[str, ...] = (),
    connection: bool = True,
) -> None:
    """Add a command under its name, with examples, and unseen under its aliases."""
    if connection:
        command = connected(command)
    epilog = examples(*lines)
    app.command(name, epilog=epilog)(command)
    for alias in aliases:
        app.command(alias, epilog=epilog, hidden=True)(command)
