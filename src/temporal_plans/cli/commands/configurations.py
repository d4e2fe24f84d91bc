"""Commands about the configurations that a service had: configs, and config show, diff."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.flags import ConnectionFlags, JsonOption, ServiceOption

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.configuration import Configuration
    from temporal_plans.messages.service import Configurations

NumberArgument = Annotated[
    str,
    typer.Argument(metavar="[NUMBER]", help="By number or id. [default: the one in force]"),
]


class _Format(StrEnum):
    YAML = "yaml"
    JSON = "json"


def configs(
    flags: ConnectionFlags, json: JsonOption = False, service: ServiceOption = None
) -> None:
    """The configurations of a service: when, by whom, why, and which is in force."""
    from temporal_plans.cli.configuration_lines import configuration_lines, configurations_json
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask

    async def asked(client: "PlansClient") -> "Configurations":
        return await client.configurations(await the_service(client, service))

    found = ask(flags, asked)
    if json:
        print_json(configurations_json(found))
    else:
        say_all(configuration_lines(found))


def show(
    flags: ConnectionFlags,
    number: NumberArgument = "",
    format: Annotated[_Format, typer.Option("--format", "-o", help="How.")] = _Format.YAML,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """What a configuration says, rendered and with its defaults left out."""
    from temporal_plans.cli.configuration_lines import specification, yaml_text
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import print_json
    from temporal_plans.cli.running import ask

    async def asked(client: "PlansClient") -> "Configuration":
        return await client.configuration(await the_service(client, service), number)

    document = specification(ask(flags, asked).spec)
    if json or format is _Format.JSON:
        print_json(document)
    else:
        typer.echo(yaml_text(document), nl=False)


def diff(
    flags: ConnectionFlags,
    before: Annotated[str, typer.Argument(metavar="A", help="The earlier, by number or id.")],
    after: Annotated[
        str,
        typer.Argument(metavar="[B]", help="The later. [default: the one in force]"),
    ] = "",
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """What differs between two configurations, and which differences restart tasks."""
    from temporal_plans.cli.configuration_lines import difference, difference_lines
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.output import print_json, say_all
    from temporal_plans.cli.running import ask
    from temporal_plans.client.services import chosen

    async def asked(client: "PlansClient") -> "Configurations":
        return await client.configurations(await the_service(client, service))

    kept = ask(flags, asked)
    changes = difference(chosen(kept, before).spec, chosen(kept, after).spec)
    if json:
        print_json(changes)
    else:
        say_all(difference_lines(changes))


def add_to(app: typer.Typer) -> None:
    offer(app, configs, "configs", "temporal-plan configs -s hello-world")
    commands = group(
        app,
        "config",
        "Show a configuration, or what differs between two.",
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
