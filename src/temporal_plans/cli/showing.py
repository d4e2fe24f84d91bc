"""Plans shown once, or for as long as they run."""

import asyncio
from datetime import UTC, datetime

from temporal_plans.cli.flags import ConnectionFlags
from temporal_plans.cli.following import follow, print_run, time_left
from temporal_plans.cli.names import the_plan, the_service
from temporal_plans.cli.output import print_json, say
from temporal_plans.cli.running import ask_until_interrupted
from temporal_plans.client.dialect import plan_body
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.client.plans_client import PlansClient


async def show_one(client: PlansClient, plan: str, service: str | None, *, json: bool) -> None:
    plan_id = await the_plan(client, plan, service)
    run = await client.show(plan_id)
    expectation = None if run.at_rest else await client.expectation(plan_id)
    if json:
        print_json(plan_body(run, time_left(run, expectation, datetime.now(UTC))))
    else:
        print_run(run, expectation)


async def show_service(client: PlansClient, service: str | None, *, json: bool) -> None:
    """All plans of a service, one under the other; those never started in a line each."""
    records = await client.plans(await the_service(client, service))
    runs = await client.show_all(record.workflow_id for record in records)
    if json:
        print_json([plan_body(run) for run in runs.values() if isinstance(run, PlanRun)])
        return
    for index, record in enumerate(records):
        if index:
            say()
        run = runs[record.workflow_id]
        if isinstance(run, PlansError):
            say(f"{record.name} ({record.status}): {run}")
        else:
            moving = not run.at_rest and run.view.status.running
            print_run(run, await client.expectation(record.workflow_id) if moving else None)


def watched(flags: ConnectionFlags, plan: str, service: str | None) -> int:
    """Show a plan until it is at rest; the exit code. Looking away is no failure."""

    async def watching(client: PlansClient) -> int:
        return await exit_code_of(client, await the_plan(client, plan, service))

    return ask_until_interrupted(flags, watching, interrupted=0)


async def waited(client: PlansClient, plan_id: str, *, quiet: bool = False) -> int:
    """For ``--wait``: the same for a plan that was just set going. Ctrl-C leaves it running, and
    says so. ``quiet`` shows nothing, for standard output is a program's."""
    try:
        return await (_awaited if quiet else exit_code_of)(client, plan_id)
    except asyncio.CancelledError:
        say(f"\nThe plan goes on; see it with `temporal plan show {plan_id} --watch`.")
        raise


async def exit_code_of(client: PlansClient, plan_id: str) -> int:
    run = await follow(client.watch(plan_id), await client.expectation(plan_id))
    return 0 if run.complete else 1


async def _awaited(client: PlansClient, plan_id: str) -> int:
    complete = False
    async for seen in client.watch(plan_id):
        complete = isinstance(seen, PlanRun) and seen.complete
    return 0 if complete else 1
