"""Plans shown once, or for as long as they run."""

import asyncio

from temporal_plans.cli.flags import ConnectionFlags
from temporal_plans.cli.following import follow, print_run
from temporal_plans.cli.names import the_plan, the_service
from temporal_plans.cli.output import print_json, say
from temporal_plans.cli.running import ask_until_interrupted
from temporal_plans.client.dialect import plan_body
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.client.plans_client import PlansClient


async def show_one(client: PlansClient, plan: str, service: str | None, *, json: bool) -> None:
    run = await client.show(await the_plan(client, plan, service))
    if json:
        print_json(plan_body(run))
    else:
        print_run(run)


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
            print_run(run)


def watched(flags: ConnectionFlags, plan: str, service: str | None) -> int:
    """Show a plan until it is at rest; the exit code. Looking away is no failure."""

    async def watching(client: PlansClient) -> int:
        return await exit_code_of(client, await the_plan(client, plan, service))

    return ask_until_interrupted(flags, watching, interrupted=0)


async def waited(client: PlansClient, plan_id: str) -> int:
    """For ``--wait``: the same for a plan that was just set going. Ctrl-C leaves it running, and
    says so."""
    try:
        return await exit_code_of(client, plan_id)
    except asyncio.CancelledError:
        say(f"\nThe plan goes on; see it with `temporal plan show {plan_id} --watch`.")
        raise


async def exit_code_of(client: PlansClient, plan_id: str) -> int:
    run = await follow(client.watch(plan_id))
    return 0 if run.complete else 1
