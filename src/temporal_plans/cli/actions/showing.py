"""Print plans once, or follow them until they end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from temporal_plans.cli.actions.running import call_client_until_interrupted
from temporal_plans.cli.inputs.flags import ConnectionFlags
from temporal_plans.cli.inputs.names import resolve_plan, resolve_service
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.following import follow, print_run, time_left
from temporal_plans.cli.terminal.output import (
    one_line,
    print_error,
    print_json,
    print_line,
    print_lines,
)
from temporal_plans.cli.terminal.tree import stuck_notes
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.dialect import plan_body
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.plans.hint import plan_hint
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.owners import PlanRecord

_BEGIN_INTERVAL = 1.0
"""Seconds between two looks at a plan that has not begun."""


async def show_plan(client: PlansClient, plan: str, service: str | None, *, json: bool) -> None:
    """Print a plan as a tree or as JSON."""
    plan_id = await resolve_plan(client, plan, service)
    run = await client.displayed(await client.show(plan_id))
    expectation = None if run.at_rest else await client.expectation(plan_id)
    stuck = await client.stuck(plan_id) if run.ended is None else ()
    if json:
        left = None if stuck else time_left(run, expectation, datetime.now(UTC))
        print_json(plan_body(run, left, stuck))
    else:
        print_run(run, expectation, stuck)


async def show_service(client: PlansClient, service: str | None, *, json: bool) -> None:
    """Print all plans of a service, and of the services of packages nested in its own; a plan that
    was never started gets one line."""
    name = await resolve_service(client, service)
    family = await client.family(name)
    if json or len(family) == 1:
        records = [record for one in family for record in await client.plans(one)]
        await _show_records(client, records, json=json)
        if not json:
            await _show_trouble(client, name)
        return
    for index, one in enumerate(family):
        if index:
            print_line()
        nested = "" if one == name else ", nested"
        print_line(f"Service {one}{nested}:")
        await _show_records(client, await client.plans(one), json=False)
        await _show_trouble(client, one)


async def _show_trouble(client: PlansClient, service: str) -> None:
    """Print what is wrong with objects of a package while no plan runs."""
    with suppress(PlansError):  # it is uninstalled, or its plans said why it does not answer
        if trouble := (await client.owner(service)).trouble:
            hint = plan_hint("to see what helps", "explain", service=service)
            print_line()
            print_line("Objects:")
            print_line(one_line(f"- {trouble}"))
            print_line(f"  {hint}")


async def _show_records(client: PlansClient, records: Sequence[PlanRecord], *, json: bool) -> None:
    runs = await client.show_all(record.workflow_id for record in records)
    runs = {id: await _displayed(client, run) for id, run in runs.items()}
    found = await client.stuck(*(record.workflow_id for record in records))

    def stuck_of(record: PlanRecord) -> list[StuckWorkflow]:
        return [one for one in found if one.element[0] == record.workflow_id]

    if json:
        shown = [(runs[record.workflow_id], stuck_of(record)) for record in records]
        print_json([plan_body(r, stuck=s) for r, s in shown if isinstance(r, PlanRun)])
        return
    for index, record in enumerate(records):
        if index:
            print_line()
        run = runs[record.workflow_id]
        if isinstance(run, PlansError) and record.run == 0:
            print_line(f"{record.name}: never run")
        elif isinstance(run, PlansError):
            print_line(f"{record.name} ({record.status}): {run}")
        else:
            moving = not run.at_rest and run.view.status.running
            expectation = await client.expectation(record.workflow_id) if moving else None
            print_run(run, expectation, stuck_of(record))
    print_lines(stuck_notes([one for one in found if not one.element[0]]))


async def show_operator_status(client: PlansClient, service: str | None) -> None:
    """Print the status document of a package as JSON."""
    print_json(await client.operator_status(await resolve_service(client, service)))


async def _displayed(client: PlansClient, run: PlanRun | PlansError) -> PlanRun | PlansError:
    return await client.displayed(run) if isinstance(run, PlanRun) else run


def watch_plan(
    flags: ConnectionFlags, plan: str, service: str | None, timeout: timedelta | None = None
) -> int:
    """Show a plan until it is at rest; return the exit code, 0 after Ctrl-C."""

    async def watching(client: PlansClient) -> int:
        plan_id = await resolve_plan(client, plan, service)
        following = follow_plan(client, plan_id)
        return await limited(following, f"plan {plan_id}", timeout, _why(plan_id))

    return call_client_until_interrupted(flags, watching, interrupted=0)


async def wait_until_begun(client: PlansClient, plan_id: str, *, quiet: bool = False) -> None:
    """Wait until a plan of a service has begun, and print what it waits for unless ``quiet``."""
    said, looks = "", 0
    while awaited := await client.awaited_before(plan_id):
        looks += 1
        if looks > 1 and awaited != said and not quiet:  # it has just been ordered
            print_line(one_line(f"Plan {plan_id} has not begun: {awaited}"))
            said = awaited
        await asyncio.sleep(_BEGIN_INTERVAL)


async def wait_for_plan(
    client: PlansClient,
    plan_id: str,
    *,
    quiet: bool = False,
    timeout: timedelta | None = None,
    first: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Follow a plan that was just started (``--wait``); return the exit code.

    Ctrl-C leaves the plan running, and a line says so. ``quiet`` prints nothing: standard output is
    for a program then. ``timeout`` limits the waiting, ``first`` is what to wait for before.
    """

    async def waiting() -> int:
        if first is not None:
            await first()
        return await (_awaited if quiet else follow_plan)(client, plan_id)

    following = waiting()
    try:
        return await limited(following, f"plan {plan_id}", timeout, _why(plan_id))
    except asyncio.CancelledError:
        print_line(
            f"\nThe plan keeps running; watch it with `temporal plan show {plan_id} --watch`."
        )
        raise


def _why(plan_id: str) -> str:
    return f"; `temporal plan explain {plan_id}` says what it waits for"


async def limited(
    waiting: Awaitable[int], noun: str, timeout: timedelta | None, hint: str = ""
) -> int:
    """Return the exit code of the waiting; 1 with a line, which ends with ``hint``, when it takes
    longer than ``timeout``."""
    limit = asyncio.timeout(timeout.total_seconds() if timeout else None)
    try:
        async with limit:
            return await waiting
    except TimeoutError:
        if not limit.expired():
            raise
        print_error(
            f"{noun} has not come to its end within {duration(timeout or timedelta())}; it "
            f"continues without this command{hint}"
        )
        return 1


async def follow_plan(client: PlansClient, plan_id: str) -> int:
    """Show a plan until it is at rest; return 0 if it is COMPLETE, else 1."""
    run = await follow(client.watch(plan_id), await client.expectation(plan_id))
    return 0 if run.complete else 1


async def _awaited(client: PlansClient, plan_id: str) -> int:
    complete = False
    async for seen in client.watch(plan_id):
        complete = isinstance(seen, PlanRun) and seen.complete
    return 0 if complete else 1
