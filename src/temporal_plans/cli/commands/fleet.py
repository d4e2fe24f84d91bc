"""Commands about fleets: what is decided of many services in many environments."""

from pathlib import Path
from typing import Annotated

import typer

from temporal_plans.cli.commands import group, offer
from temporal_plans.cli.inputs.flags import JsonOption

_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Documents: environments, products, states, suppressions, expectations.",
    ),
]


def decide(
    files: _Files,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="The time of the decision, such as 2026-01-05T08:30:00Z. [default: those of the "
            "expectations in the files, else now]",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what is decided of each entity in some documents, without any server.

    Exits with 1 when a decision is not as an expectation in the files says.
    """
    from temporal_plans.cli.actions.fleet_deciding import decide_files
    from temporal_plans.cli.inputs.times import time_of

    raise typer.Exit(decide_files(files, time_of(at, "--at"), as_json=json))


def add_to(app: typer.Typer) -> None:
    fleet = group(
        app,
        "fleet",
        "Decide about many services in many environments.",
        "temporal-plan fleet decide prod.yml products.yml --at 2026-01-05T08:30:00Z",
    )
    offer(
        fleet,
        decide,
        "decide",
        "temporal-plan fleet decide prod.yml products.yml --at 2026-01-05T08:30:00Z",
        "temporal-plan fleet decide examples/fleets/*.yml --json",
        connection=False,
    )
