"""Commands about operator packages: `temporal plan package ...`."""

import typer

from temporal_plans.cli.commands import group, rendering


def add_to(app: typer.Typer) -> None:
    package = group(
        app,
        "package",
        "Look at operator packages.",
        "temporal-plan package render kafka",
    )
    rendering.add_to(package)
