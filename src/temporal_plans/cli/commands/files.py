"""Commands about files: validate, schema, run."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import (
    ByOption,
    ConnectionFlags,
    EnvFileOption,
    EnvOption,
    FileArgument,
    FileOrPackageArgument,
    JsonOption,
    LenientOption,
    ParameterOption,
    ReasonOption,
    TimeoutOption,
    UnusedOption,
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
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
) -> None:
    """Run a plan file: an operation without a service."""
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.actions.showing import wait_for_plan
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.cli.inputs.files import FileKind, expect
    from temporal_plans.cli.inputs.pairs import pairs
    from temporal_plans.cli.inputs.strategy_names import custom_strategies
    from temporal_plans.cli.terminal.output import print_json, print_line, print_note
    from temporal_plans.domain.values.names import name_fault
    from temporal_plans.loading.plans import load_plan

    # service/... and pool/... are the engine's own, <service>/<plan> a service's
    if plan_id and (fault := name_fault(plan_id)):
        raise typer.BadParameter(
            f"{plan_id!r}: {fault.replace('a name', 'an id')}", param_hint="--id"
        )
    limit = timeout_of(timeout, waits=wait)
    arguments = pairs(param or [], "-p")
    expect(file, FileKind.PLAN)
    spec = load_plan(file)
    for problem in custom_strategies(spec, source=file.name):
        print_note(f"Only a worker that registers the strategy can run this plan: {problem}")

    async def started(client: "PlansClient") -> int:
        started_id = await client.run(
            spec, plan_id=plan_id, arguments=arguments, by=by or whoami(), reason=reason
        )
        if json:
            print_json({"plan": started_id})
        else:
            print_line(f'Plan "{started_id}" is under way.')
        if not wait:
            return 0
        return await wait_for_plan(client, started_id, quiet=json, timeout=limit)

    raise typer.Exit(call_client_until_interrupted(flags, started))


def validate(
    file: FileOrPackageArgument,
    env: EnvOption = None,
    env_file: EnvFileOption = None,
    lenient: LenientOption = False,
    verbose: UnusedOption = False,
    json: JsonOption = False,
) -> None:
    """Check a service file, a plan file or a package, and show its plans."""
    from temporal_plans.cli.actions.validating import validate_file, validate_file_as_json
    from temporal_plans.cli.inputs.files import ServiceFileOptions

    check = validate_file_as_json if json else validate_file
    raise typer.Exit(check(ServiceFileOptions(file, env, env_file, lenient, verbose)))


class _SchemaKind(StrEnum):
    SERVICE = "service"
    PLAN = "plan"
    FLEET = "fleet"
    FLEET_DECISION = "fleet-decision"
    PACKAGE = "package"


def schema(
    kind: Annotated[_SchemaKind, typer.Argument(help="The kind of file, or of output.")],
) -> None:
    """Print the JSON Schema of files, for editors."""
    from temporal_plans.cli.terminal.output import print_json
    from temporal_plans.loading.schema import json_schema

    print_json(json_schema(kind.value))


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        validate,
        "validate",
        "temporal-plan validate svc.yml --values svc.env",
        "temporal-plan validate backup.yml",
        "temporal-plan validate my-server/",
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
