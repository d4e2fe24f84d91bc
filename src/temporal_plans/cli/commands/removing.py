"""The command that removes an agent permanently: remove-agent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import ConnectionFlags, JsonOption

if TYPE_CHECKING:
    from temporal_plans.messages.pools import DeregisterResult


def remove_agent(
    flags: ConnectionFlags,
    agent: Annotated[
        str,
        typer.Argument(metavar="AGENT", help="The agent's id.", autocompletion=completion.agents),
    ],
    pool: Annotated[
        str,
        typer.Option(
            "--pool",
            metavar="NAME",
            help="The pool of the agent.",
            autocompletion=completion.pools,
        ),
    ] = "default",
    force: Annotated[
        bool,
        typer.Option("--force", help="Release what pods hold on the agent; their data is lost."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove an agent from its pool permanently, because its machine is gone or will be.

    Stop the agent first: a running agent registers again, as a new one. While pods hold
    reservations on it the command is refused; with --force their tasks are GONE_BY_OPERATOR, and
    recovery replaces the pods on other agents, with new volumes.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.terminal.output import print_json, print_lines, written

    result = call_client(flags, lambda client: client.remove_agent(agent, pool=pool, force=force))
    if json:
        print_json({"agent": agent, "pool": pool, **written(result)})
    else:
        print_lines(_lines(agent, pool, result))


def _lines(agent: str, pool: str, result: "DeregisterResult") -> Iterator[str]:
    yield f"agent {agent} has been removed from pool {pool}"
    if result.dropped:
        yield f"{len(result.dropped)} reservations were released:"
        yield from (f"- {key}" for key in result.dropped)
    if result.alive:
        yield (
            f"agent {agent} was still running: stop it, or it registers again, as a new agent "
            "that first kills the tasks and deletes the files of its former pods"
        )


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        remove_agent,
        "remove-agent",
        "temporal-plan remove-agent rack-3-7",
        "temporal-plan remove-agent rack-3-7 --force",
    )
