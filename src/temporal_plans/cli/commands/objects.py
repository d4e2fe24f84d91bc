"""The command ``objects``."""

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ConnectionFlags, JsonOption, ServiceOption


def objects(
    flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None
) -> None:
    """Look at what a package has in its cluster: each object, its health, what others changed.

    Exits with 1 when the cluster does not answer.
    """
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.object_lines import object_lines
    from temporal_plans.cli.terminal.output import print_error, print_json, print_lines
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.messages.packages import ObjectsReport

    async def asked(client: PlansClient) -> ObjectsReport:
        return await client.objects(await resolve_service(client, service))

    report = call_client(flags, asked)
    if json:
        print_json(report)
    elif not report.problem:
        print_lines(object_lines(report))
    if report.problem:
        print_error(report.problem)
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    offer(app, objects, "objects", "temporal-plan objects -s store", "temporal-plan objects --json")
