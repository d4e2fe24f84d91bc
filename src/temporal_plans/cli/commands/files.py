"""Commands about files: validate, schema, run."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import (
    ByOption,
    ConnectionFlags,
    EnvFileOption,
    EnvOption,
    FileArgument,
    ParameterOption,
    ReasonOption,
    WaitOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient


def run(
    flags: ConnectionFlags,
    file: FileArgument,
    param: ParameterOption = None,
    plan_id: Annotated[
        str, typer.Option("--id", metavar="ID", help="The plan's id. [default: its name]")
    ] = "",
    wait: WaitOption = False,
    reason: ReasonOption = "",
    by: ByOption = None,
) -> None:
    """Run a plan file: an operation that belongs to no service."""
    from temporal_plans.cli.files import FileKind, expect
    from temporal_plans.cli.output import say
    from temporal_plans.cli.pairs import pairs
    from temporal_plans.cli.running import ask_until_interrupted
    from temporal_plans.cli.showing import waited
    from temporal_plans.cli.strategy_names import only_workers_know
    from temporal_plans.cli.who import whoami
    from temporal_plans.domain.names import name_fault
    from temporal_plans.loading.plans import load_plan

    # service/... and pool/... are the engine's own, <service>/<plan> a service's
    if plan_id and (fault := name_fault(plan_id)):
        raise typer.BadParameter(
            f"{plan_id!r}: {fault.replace('a name', 'an id')}", param_hint="--id"
        )
    arguments = pairs(param or [], "-p")
    expect(file, FileKind.PLAN)
    spec = load_plan(file)
    for problem in only_workers_know(spec, source=file.name):
        say(f"Only a worker that registers it can run this: {problem}")

    async def started(client: "PlansClient") -> int:
        started_id = await client.run(
            spec, plan_id=plan_id, arguments=arguments, by=by or whoami(), reason=reason
        )
        say(f'Plan "{started_id}" is under way.')
        return await waited(client, started_id) if wait else 0

    raise typer.Exit(ask_until_interrupted(flags, started))


def validate(file: FileArgument, env: EnvOption = None, env_file: EnvFileOption = None) -> None:
    """Check a service file or a plan file, and show the plans that it would give."""
    from temporal_plans.cli.validating import validated

    raise typer.Exit(validated(file, env, env_file))


class _FileKind(StrEnum):
    SERVICE = "service"
    PLAN = "plan"


def schema(
    kind: Annotated[_FileKind, typer.Argument(help="Which kind of file.")],
) -> None:
    """Print the JSON Schema of service or plan files, for editors."""
    from temporal_plans.cli.output import print_json
    from temporal_plans.loading.schema import json_schema

    print_json(json_schema("service" if kind is _FileKind.SERVICE else "plan"))


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        validate,
        "validate",
        "temporal-plan validate svc.yml --values svc.env",
        "temporal-plan validate backup.yml",
        connection=False,
    )
    offer(
        app,
        schema,
        "schema",
        "temporal-plan schema plan > plan.schema.json",
        connection=False,
    )
    offer(
        app,
        run,
        "run",
        "temporal-plan run backup.yml -p SNAPSHOT=nightly --wait",
        "temporal-plan run maintenance.yml --id maintenance-42",
    )
