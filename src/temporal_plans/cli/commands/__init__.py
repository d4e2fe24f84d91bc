"""The commands of `temporal plan`, grouped by purpose. Slow modules are imported inside them:
`temporal plan --help` must not load Temporal's SDK."""

from collections.abc import Callable

import typer

from temporal_plans.cli.commands.wording import WordedCommand
from temporal_plans.cli.inputs.flags import connected, examples
from temporal_plans.cli.inputs.option_groups import ungrouped

Command = Callable[..., None]


def offer(
    app: typer.Typer,
    command: Command,
    name: str,
    *lines: str,
    aliases: tuple[str, ...] = (),
    connection: bool = True,
) -> None:
    """Add a command under its name, with examples, and hidden under its aliases."""
    command = ungrouped(command)
    if connection:
        command = connected(command)
    epilog = examples(*lines)
    if connection:
        epilog += "\n\nFor connection options (--address ...) see: temporal-plan --help"
    first_line = (command.__doc__ or "").partition("\n")[0]  # or it would be cut in the list
    app.command(name, cls=WordedCommand, epilog=epilog, short_help=first_line)(command)
    for alias in aliases:
        app.command(alias, cls=WordedCommand, epilog=epilog, hidden=True)(command)


def group(app: typer.Typer, name: str, text: str, *lines: str) -> typer.Typer:
    """Return an app for the commands of one noun, such as `temporal plan pod restart`."""
    commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(commands, name=name, help=text, short_help=text, epilog=examples(*lines))
    return commands
