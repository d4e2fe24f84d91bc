"""The command that takes an agent away for good: remove-agent."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import ConnectionFlags

if TYPE_CHECKING:
    from temporal_plans.messages.cluster import DeregisterResult


def remove_agent(
    flags: ConnectionFlags,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's id.")],
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAME", help="The pool that it is in.")
    ] = "default",
    force: Annotated[
        bool, typer.Option("--force", help="Give up what pods hold there, their data included.")
    ] = False,
) -> None:
    """Take an agent out of its pool for good: its machine is gone, or is to go.

    Stop the agent first: one that runs registers again, as a new one. While pods hold reservations
    there it is refused; with --force their tasks are GONE_BY_OPERATOR, and recovery replaces the
    pods on other agents, with new volumes.
    """
    from temporal_plans.cli.output import say_all
    from temporal_plans.cli.running import ask

    result = ask(flags, lambda client: client.remove_agent(agent, pool=pool, force=force))
    say_all(_lines(agent, pool, result))


def _lines(agent: str, pool: str, result: "DeregisterResult") -> Iterator[str]:
    yield f"agent {agent} has been removed from pool {pool}"
    if result.dropped:
        yield f"{len(result.dropped)} reservations were given up:"
        yield from (f"- {key}" for key in result.dropped)
    if result.alive:
        yield (
            f"agent {agent} was still running: stop it, or it registers again, as a new agent "
            "that first ends and deletes what it has left of its former pods"
        )


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        remove_agent,
        "remove-agent",
        "temporal-plan remove-agent rack-3-7",
        "temporal-plan remove-agent rack-3-7 --force",
    )
