"""Completion of names by the shell: services, plans, phases, steps, pods, tasks, agents, pools.

The names are asked of the server. A completion must be quick and silent: without an answer within a
second or so there are no names. Slow modules are imported inside the functions.
"""

import asyncio
import dataclasses
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from temporal_plans.cli.inputs.flags import ConnectionFlags
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.messages.plan_views import PlanView

ANSWER_TIMEOUT = timedelta(seconds=1.5)
"""The limit for connection and answers together."""

_LISTENS_TIMEOUT = 0.4
"""Seconds in which the server must accept a connection. The SDK would retry for longer."""

COMPLETE_VARIABLE = "_TEMPORAL_PLAN_COMPLETE"
"""The variable by which shells ask for completions; its value names the shell."""

Names = Iterable[str]
Lookup = Callable[["PlansClient", dict[str, Any]], Awaitable[Names]]


def completer(lookup: Lookup) -> Callable[[typer.Context, str], list[str]]:
    """Return the function that Typer calls for an argument or option."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        names: Names = ()
        with suppress(Exception):  # there is no place for its text
            names = asyncio.run(_asked(lookup, ctx))
        found = dict.fromkeys(name for name in names if name.startswith(incomplete))
        return [_quoted(name) for name in found]

    return complete


async def _asked(lookup: Lookup, ctx: typer.Context) -> Names:
    from temporal_plans.cli.actions.running import connected_client

    flags = _flags(ctx.params).over(_flags(ctx.find_root().params))
    async with asyncio.timeout(ANSWER_TIMEOUT.total_seconds()):
        address = flags.connection().resolve().get("target_host", "")
        await _listens(address)
        return await lookup(await connected_client(flags), ctx.params)


def _flags(params: Mapping[str, Any]) -> "ConnectionFlags":
    from temporal_plans.cli.inputs.flags import ConnectionFlags

    fields = (field.name for field in dataclasses.fields(ConnectionFlags))
    return ConnectionFlags(**{name: params[name] for name in fields if name in params})


async def _listens(address: str) -> None:
    """Raise OSError or TimeoutError when the server does not accept a connection at once."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(_LISTENS_TIMEOUT):
        _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.close()


_SPECIAL = re.compile(r"[^\w./:@%+=,-]")


def _quoted(name: str) -> str:
    """Return a name as the shell must see it. Bash inserts completions as they are; other shells
    quote by themselves."""
    if os.environ.get(COMPLETE_VARIABLE) != "complete_bash":
        return name
    words = os.environ.get("COMP_WORDS", "").split("\n")
    number = os.environ.get("COMP_CWORD", "")
    current = words[int(number)] if number.isdecimal() and int(number) < len(words) else ""
    return name if current.startswith(("'", '"')) else _SPECIAL.sub(r"\\\g<0>", name)


# --- lookups --------------------------------------------------------------------------------------


async def _services(client: "PlansClient", params: dict[str, Any]) -> Names:
    return await client.services()


async def _plans(client: "PlansClient", params: dict[str, Any]) -> Names:
    chosen = params.get("service")
    if chosen:
        return [plan.name for plan in await client.plans(chosen.strip("/"))]
    services = [] if chosen == "" else await client.services()
    own = [run.id for run in await client.own_plans(scheduled=False)]
    if len(services) == 1:
        return [*(plan.name for plan in await client.plans(services[0])), *own]
    records = [plan for service in services for plan in await client.plans(service)]
    return [*(plan.workflow_id for plan in records), *own]


async def _plan(client: "PlansClient", params: dict[str, Any]) -> "PlanView":
    from temporal_plans.cli.inputs.names import resolve_plan

    plan_id = await resolve_plan(client, params.get("plan") or "", params.get("service"))
    return (await client.show(plan_id)).view


async def _phases(client: "PlansClient", params: dict[str, Any]) -> Names:
    return [phase.name for phase in (await _plan(client, params)).phases]


async def _steps(client: "PlansClient", params: dict[str, Any]) -> Names:
    wanted = params.get("phase")
    phases = (await _plan(client, params)).phases
    return [step.name for one in phases if wanted in (one.name, one.id) for step in one.steps]


async def _service(client: "PlansClient", params: dict[str, Any]) -> str:
    from temporal_plans.cli.inputs.names import resolve_service

    return await resolve_service(client, params.get("service"))


async def _pods(client: "PlansClient", params: dict[str, Any]) -> Names:
    return [pod.name for pod in await client.pods(await _service(client, params))]


async def _tasks(client: "PlansClient", params: dict[str, Any]) -> Names:
    if params.get("plan"):
        phases = (await _plan(client, params)).phases
        return [f"{phase.name}/{step.name}" for phase in phases for step in phase.steps]
    chosen = (params.get("service") or "").strip("/")
    services = [chosen] if chosen else await client.services()
    return [task.name for service in services for task in await client.tasks(service)]


async def _pod_tasks(client: "PlansClient", params: dict[str, Any]) -> Names:
    tasks = await client.tasks(await _service(client, params))
    pod = params.get("pod")  # unknown where Typer has no arguments before an option
    return [task.task for task in tasks if pod in (None, f"{task.pod}-{task.index}")]


async def _pools(client: "PlansClient", params: dict[str, Any]) -> Names:
    return await client.pools()


async def _agents(client: "PlansClient", params: dict[str, Any]) -> Names:
    from temporal_plans.messages.pools import PoolStatus

    pools = await client.show_pools()
    chosen = params.get("pool")
    return [
        agent.info.id
        for name, pool in pools.items()
        if isinstance(pool, PoolStatus) and chosen in (None, "", name)
        for agent in pool.agents
    ]


async def _configurations(client: "PlansClient", params: dict[str, Any]) -> Names:
    name = await _service(client, params)
    if await client.content_of(name) == "package":
        packages = await client.package_configurations(name)
        return [str(one.number) for one in packages.configurations]
    kept = await client.configurations(name)
    return [str(one.number) for one in kept.configurations]


async def _schedules(client: "PlansClient", params: dict[str, Any]) -> Names:
    return [schedule.id for schedule in await client.schedules("")]


services = completer(_services)
plans = completer(_plans)
phases = completer(_phases)
steps = completer(_steps)
pods = completer(_pods)
tasks = completer(_tasks)
pod_tasks = completer(_pod_tasks)
pools = completer(_pools)
agents = completer(_agents)
configurations = completer(_configurations)
schedules = completer(_schedules)
