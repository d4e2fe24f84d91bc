"""Commands about fleets: what is decided of many services in many environments."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from temporal_plans.cli.commands import (
    fleet_environments,
    fleet_products,
    fleet_promotions,
    fleet_requests,
    group,
    offer,
)
from temporal_plans.cli.inputs.flags import JsonOption

_SIMULATION_LIMIT = timedelta(days=400)

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


def simulate(
    files: _Files,
    length: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How far to look ahead, such as 14d.")
    ] = "14d",
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="The time at which it starts. [default: now]"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what would happen to some documents over the next days, without any server.

    Documents of the kind events say what else happens: releases, recalls, suppressions, commands,
    plans that fail. Exits with 1 when one of them could not happen.
    """
    from temporal_plans.cli.actions.fleet_simulating import simulate_files
    from temporal_plans.cli.inputs.durations import duration_of
    from temporal_plans.cli.inputs.times import time_of

    limit = duration_of(length, "--for", minimum=timedelta(minutes=1))
    if limit > _SIMULATION_LIMIT:
        raise typer.BadParameter(
            f"at most {_SIMULATION_LIMIT.days}d (found {length!r})", param_hint="--for"
        )
    raise typer.Exit(simulate_files(files, time_of(at, "--at"), limit, as_json=json))


def add_to(app: typer.Typer) -> None:
    fleet = group(
        app,
        "fleet",
        "Keep many services in many environments at the releases that are allowed.",
        "temporal-plan fleet apply -f products.yml -f prod.yml",
        "temporal-plan fleet status",
        "temporal-plan fleet decide prod.yml products.yml --at 2026-01-05T08:30:00Z",
        "temporal-plan fleet simulate prod.yml products.yml events.yml --for 14d",
    )
    fleet_environments.add_to(fleet)
    fleet_products.add_to(fleet)
    fleet_promotions.add_to(fleet)
    fleet_requests.add_to(fleet)
    offer(
        fleet,
        decide,
        "decide",
        "temporal-plan fleet decide prod.yml products.yml --at 2026-01-05T08:30:00Z",
        "temporal-plan fleet decide examples/fleets/recall.yml --json",
        connection=False,
    )
    offer(
        fleet,
        simulate,
        "simulate",
        "temporal-plan fleet simulate prod.yml products.yml --for 14d",
        "temporal-plan fleet simulate prod.yml products.yml recall.yml --at 2026-01-05T08:30:00Z",
        connection=False,
    )
