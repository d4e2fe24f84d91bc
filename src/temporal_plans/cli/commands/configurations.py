"""Commands about the configurations of a service: configs, config show, config diff."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import ConnectionFlags, JsonOption, ServiceOption

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.messages.packages import PackageConfigurations
    from temporal_plans.messages.services import Configurations

NumberArgument = Annotated[
    str,
    typer.Argument(
        metavar="[NUMBER]",
        help="A number or id. [default: the target]",
        autocompletion=completion.configurations,
    ),
]


class _Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def configs(
    flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None
) -> None:
    """List the configurations of a service: time, author, reason, and which is in force."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.configuration_lines import (
        configuration_lines,
        configurations_json,
    )
    from temporal_plans.cli.terminal.output import print_json, print_lines

    async def asked(client: "PlansClient") -> "Configurations | PackageConfigurations":
        return await _kept(client, await resolve_service(client, service))

    found = call_client(flags, asked)
    if json:
        print_json(configurations_json(found))
    else:
        print_lines(configuration_lines(found))


def show(
    flags: ConnectionFlags,
    number: NumberArgument = "",
    format: Annotated[
        _Format, typer.Option("--format", "-o", help="Output format.")
    ] = _Format.YAML,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Print a configuration, rendered and without its defaults."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.configuration_lines import specification, yaml_text
    from temporal_plans.cli.terminal.installation_lines import installation_document
    from temporal_plans.cli.terminal.output import print_json
    from temporal_plans.client.verbs.packages import found_in
    from temporal_plans.client.verbs.services import find_configuration
    from temporal_plans.messages.services import Configurations

    async def asked(client: "PlansClient") -> dict[str, Any]:
        kept = await _kept(client, await resolve_service(client, service))
        if isinstance(kept, Configurations):
            return specification(find_configuration(kept, number).spec)
        return installation_document(found_in(kept, number).installation)

    document = call_client(flags, asked)
    if json or format is _Format.JSON:
        print_json(document)
    else:
        typer.echo(yaml_text(document), nl=False)


def diff(
    flags: ConnectionFlags,
    before: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="The earlier configuration, by number or id.",
            autocompletion=completion.configurations,
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="[B]",
            help="The later configuration. [default: the target]",
            autocompletion=completion.configurations,
        ),
    ] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Show the differences of two configurations, and which of them restart tasks."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.terminal.configuration_lines import (
        compared_lines,
        difference,
        difference_lines,
    )
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.client.verbs.services import find_configuration
    from temporal_plans.messages.services import Configurations

    async def asked(client: "PlansClient") -> "Configurations | PackageConfigurations":
        return await _kept(client, await resolve_service(client, service))

    kept = call_client(flags, asked)
    if not isinstance(kept, Configurations):
        _print_package_difference(kept, before, after, json=json)
        return
    old, new = find_configuration(kept, before), find_configuration(kept, after)
    changes = difference(old, new)
    if json:
        print_json(changes)
    else:
        print_lines(compared_lines(old, new, kept.target))
        print_lines(difference_lines(changes))


async def _kept(client: "PlansClient", service: str) -> "Configurations | PackageConfigurations":
    if await client.content_of(service) == "package":
        return await client.package_configurations(service)
    return await client.configurations(service)


def _print_package_difference(
    kept: "PackageConfigurations", before: str, after: str, *, json: bool
) -> None:
    from temporal_plans.cli.terminal.configuration_lines import compared_lines
    from temporal_plans.cli.terminal.installation_lines import difference, difference_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.client.verbs.packages import found_in

    old, new = found_in(kept, before), found_in(kept, after)
    change = difference(old, new)
    if json:
        print_json(change)
    else:
        print_lines(compared_lines(old, new, kept.target))
        print_lines(difference_lines(change))


def add_to(app: typer.Typer) -> None:
    offer(app, configs, "configs", "temporal-plan configs -s hello-world")
    commands = group(
        app,
        "config",
        "Show a configuration, or the differences of two.",
        "temporal-plan config show 3 -s hello-world",
        "temporal-plan config diff 2 3",
    )
    offer(commands, configs, "list", "temporal-plan config list")
    offer(
        commands,
        show,
        "show",
        "temporal-plan config show",
        "temporal-plan config show 3 --json",
    )
    offer(commands, diff, "diff", "temporal-plan config diff 2", "temporal-plan config diff 2 3")
