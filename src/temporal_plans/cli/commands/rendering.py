"""The command ``package render``."""

from pathlib import Path
from typing import Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import JsonOption


def render(
    source: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A folder, a .tgz archive, or the http address of one."),
    ],
    template: Annotated[
        list[str] | None,
        typer.Option(
            "--template",
            metavar="T",
            help="A template, by its path below templates/; repeatable. [default: all]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Write each template to FOLDER/T instead."
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option("--name", metavar="N", help="`.Name`. [default: the package's name]"),
    ] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NS", help="`.Namespace`, of Kubernetes.")
    ] = "default",
    plan: Annotated[
        str,
        typer.Option("--plan", metavar="P", help="`.PlanName`, and the plan of `.Pipes`."),
    ] = "deploy",
    phase: Annotated[
        str,
        typer.Option("--phase", metavar="P", help="`.PhaseName`. [default: the plan's first]"),
    ] = "",
    step: Annotated[
        str,
        typer.Option("--step", metavar="S", help="`.StepName`. [default: the phase's first]"),
    ] = "",
    pipe: Annotated[
        list[str] | None,
        typer.Option(
            "--pipe",
            metavar="KEY=ARTEFACT",
            help="`.Pipes.KEY`; repeatable. [default: the name that the plan's task gives]",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", "-p", metavar="K=V", help="A parameter of the package; repeatable."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Print what the templates of a package give, or write it to a folder."""
    from temporal_plans.cli.actions.rendering import RenderOptions, render_templates
    from temporal_plans.cli.inputs.pairs import pairs

    options = RenderOptions(
        source=source,
        templates=template or [],
        output=output,
        name=name,
        namespace=namespace,
        plan=plan,
        phase=phase,
        step=step,
        pipes=pairs(pipe or [], "--pipe"),
        parameters=pairs(param or [], "-p"),
    )
    raise typer.Exit(render_templates(options, json=json))


def add_to(package: typer.Typer) -> None:
    """Add the command to the app of `temporal plan package`."""
    offer(
        package,
        render,
        "render",
        "temporal-plan package render kafka",
        "temporal-plan package render kafka --template service.yaml -p BROKER_COUNT=5",
        "temporal-plan package render kafka --name events --namespace prod --output rendered",
        connection=False,
    )
