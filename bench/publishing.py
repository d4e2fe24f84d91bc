"""From a publication to plans in many environments, beside the least that Temporal needs for it: a
signal to each of as many workflows, of which each runs two activities, the second of which starts a
workflow."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from bench.bare import TASK_QUEUE, BareEnvironment
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.messages.fleets.declarations import (
    EntityDeclaration,
    EnvironmentDeclaration,
    SettingsDeclaration,
)
from temporal_plans.messages.fleets.environments import EnvironmentApply
from temporal_plans.messages.fleets.names import fleet_plan_id
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.products import Publish

PLAN_FILE = "name: install\nphases: {change: {steps: {work: {activity: {type: noop}}}}}\n"
PRODUCT = "bench:web"
_POLL_INTERVAL = 2.0
_TIMEOUT = 600.0


@dataclass(frozen=True)
class Spread:
    """Seconds from the beginning to the first and to the last started workflow, of each round."""

    name: str
    count: int
    first: list[float] = field(default_factory=list[float])
    last: list[float] = field(default_factory=list[float])

    def add(self, begin: datetime, starts: Sequence[datetime]) -> None:
        self.first.append((min(starts) - begin).total_seconds())
        self.last.append((max(starts) - begin).total_seconds())


async def measure_publishing(
    client: Client, environments: int, rounds: int, report: Callable[[str], None]
) -> tuple[Spread, Spread]:
    """Measure both, in turns; the first round of each is to warm up and does not count."""
    plans = PlansClient(client)
    names = [f"bench-{number}" for number in range(environments)]
    report(f"{environments} environments")
    await _each(_applied(plans, name) for name in names)
    await _each(_begun(client, name) for name in names)
    await _until(lambda: _are_idle(plans, names))
    own = Spread("a release published", environments)
    bare = Spread("bare Temporal", environments)
    for round_ in range(rounds + 1):
        report(f"round {round_}")
        kept = round_ > 0
        begin = datetime.now(UTC)
        await _publish(plans, f"1.0.{round_}")
        ids = [fleet_plan_id(name, "web", round_ + 1) for name in names]
        starts = await _starts(client, ids)
        if kept:
            own.add(begin, starts)
        await _until(lambda: _are_idle(plans, names))
        begin = datetime.now(UTC)
        await _each(
            client.get_workflow_handle(f"bare-{name}").signal(BareEnvironment.announced, round_)
            for name in names
        )
        starts = await _starts(client, [f"bare-{name}/{round_}" for name in names])
        if kept:
            bare.add(begin, starts)
    return own, bare


async def _applied(client: PlansClient, name: str) -> None:
    entity = EntityDeclaration.model_validate(
        {"product": PRODUCT, "kind": "plan", "config": {"1.0.0": {}}}
    )
    declaration = EnvironmentDeclaration(
        name=name, settings=SettingsDeclaration(), entities={"web": entity}
    )
    await client.apply_environment(EnvironmentApply(environment=declaration))


async def _begun(client: Client, name: str) -> None:
    await client.start_workflow(BareEnvironment.run, id=f"bare-{name}", task_queue=TASK_QUEUE)


async def _publish(client: PlansClient, version: str) -> None:
    release = Release(version=version, channels=("stable",))
    payload = ReleasePayload(files={"install.yml": PLAN_FILE})
    await client.publish(PRODUCT, Publish(release=release, payload=payload))


async def _are_idle(client: PlansClient, names: Sequence[str]) -> bool:
    """Whether every environment is up to date, or has nothing to install yet."""
    found = await client.fleet(*names)
    return all(
        not isinstance(one, Exception)
        and all(row.standing.code in ("UP_TO_DATE", "CHANNEL_EMPTY") for row in one.rows)
        for one in found.values()
    )


async def _starts(client: Client, ids: Sequence[str]) -> list[datetime]:
    """Return when workflows were started, as soon as all were. Looks late, so that this does not
    cost what is measured."""
    found: list[datetime] = []

    async def started() -> bool:
        nonlocal found
        await asyncio.sleep(1)
        if await _start(client, ids[-1]) is None:
            return False
        answers = await asyncio.gather(*(_start(client, one) for one in ids))
        found = [one for one in answers if one is not None]
        return len(found) == len(ids)

    await _until(started)
    return found


async def _start(client: Client, id: str) -> datetime | None:
    try:
        return (await client.get_workflow_handle(id).describe()).start_time
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return None


async def _each(work: Any) -> None:
    """Do all of it, some at a time."""
    slots = asyncio.Semaphore(8)

    async def one(item: Awaitable[object]) -> None:
        async with slots:
            await item

    await asyncio.gather(*(one(item) for item in work))


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + _TIMEOUT
    while not await condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not done after {timedelta(seconds=_TIMEOUT)}")
        await asyncio.sleep(_POLL_INTERVAL)


def publishing_as_json(results: Sequence[Spread]) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "environments": one.count,
            "first": {"median": median(one.first), "rounds": one.first},
            "last": {"median": median(one.last), "rounds": one.last},
        }
        for one in results
    ]


def print_publishing(own: Spread, bare: Spread, console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("case", no_wrap=True)
    for heading in ("environments", "first ms", "last ms", "times bare"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in (own, bare):
        ratio = median(one.last) / median(bare.last)
        table.add_row(
            one.name,
            str(one.count),
            f"{1000 * median(one.first):.0f}",
            f"{1000 * median(one.last):.0f}",
            f"{ratio:.2f}",
        )
    console.print(table)
    console.print("From the request to the start of the first and the last plan, by the server.")
