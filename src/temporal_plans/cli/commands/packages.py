"""Commands about operator packages: package verify, render, params, plans, tasks, create,
pack, import."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from temporal_plans.cli.commands import group, offer, rendering
from temporal_plans.cli.inputs.flags import ConnectionFlags, JsonOption

PackageArgument = Annotated[
    str,
    typer.Argument(metavar="PACKAGE", help="A folder, a .tgz archive, or the address of one."),
]


class _Style(StrEnum):
    """As ``domain.packages.checks.style``, which is slow to import."""

    DISPLAY = "display"
    DESCRIPTION = "description"
    HINT = "hint"
    TYPE = "type"
    HAS_GROUP = "has-group"
    GROUPS = "groups"
    ALL = "all"


def verify(
    package: PackageArgument,
    style: Annotated[
        list[_Style] | None,
        typer.Option("--style", help="Also check texts about parameters; repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check a package, and print every error and warning. Errors end with exit code 1."""
    from temporal_plans.cli.actions.packages import verify_package

    wanted = list(_Style)[:-1] if style and _Style.ALL in style else style or []
    names = list(dict.fromkeys(one.value for one in wanted))
    raise typer.Exit(verify_package(package, styles=names, json=json))


def params(package: PackageArgument, json: JsonOption = False) -> None:
    """List the parameters of a package."""
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.cli.terminal.package_lines import parameter_table
    from temporal_plans.loading.packages.reader import load_package

    loaded = load_package(package)
    if json:
        print_json(loaded.parameters)
    else:
        print_lines(parameter_table(loaded))


def plans(package: PackageArgument, json: JsonOption = False) -> None:
    """Show the plans of a package as trees."""
    from temporal_plans.cli.actions.packages import plan_values
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.cli.terminal.package_lines import plan_trees
    from temporal_plans.loading.packages.reader import load_package

    loaded = load_package(package)
    if json:
        print_json(plan_values(loaded))
    else:
        print_lines(plan_trees(loaded))


def tasks(package: PackageArgument, json: JsonOption = False) -> None:
    """List the tasks of a package."""
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.cli.terminal.package_lines import task_table
    from temporal_plans.loading.packages.reader import load_package

    loaded = load_package(package)
    if json:
        print_json(loaded.operator.tasks)
    else:
        print_lines(task_table(loaded))


def create(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    name: Annotated[
        str, typer.Option("--name", help="The package's name. [default: the folder's]")
    ] = "",
) -> None:
    """Write a small package that works, to begin with."""
    from temporal_plans.cli.actions.packages import create_package
    from temporal_plans.domain.packages.package import package_name_fault

    chosen = name or folder.resolve().name
    if fault := package_name_fault(chosen):
        raise typer.BadParameter(f"{chosen!r}: {fault}", param_hint="--name")
    create_package(folder, chosen)


def pack(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", exists=True, file_okay=False, help="The package's folder."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", exists=True, file_okay=False, help="Where it is written."),
    ] = Path(),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the archive if it exists.")
    ] = False,
) -> None:
    """Check a package, and write its .tgz archive. Equal packages give equal archives."""
    from temporal_plans.cli.actions.packages import pack_package

    pack_package(folder, output, overwrite=overwrite)


def import_(
    flags: ConnectionFlags,
    cluster: Annotated[
        str, typer.Option("--cluster", help="The cluster, as its worker serves it.")
    ],
    kube_namespace: Annotated[
        str,
        typer.Option("--kube-namespace", help="Only instances of this namespace of the cluster."),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken over.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Take over the instances that another controller of packages left in a cluster.

    Each becomes a service with its package, its parameters, the newest run of each plan, and its
    objects. Nothing is applied. Stop that controller first. Exits with 1 if one was not taken over.
    """
    from temporal_plans.cli.actions.importing import import_instances

    raise typer.Exit(import_instances(flags, cluster, kube_namespace, dry_run=dry_run, json=json))


def add_to(app: typer.Typer) -> None:
    commands = group(
        app,
        "package",
        "Write and check operator packages.",
        "temporal-plan package create my-server",
        "temporal-plan package verify my-server",
    )
    offer(
        commands,
        verify,
        "verify",
        "temporal-plan package verify my-server",
        "temporal-plan package verify my-server-0.1.0.tgz --json",
        "temporal-plan package verify my-server --style all",
        connection=False,
    )
    for command, name in ((params, "params"), (plans, "plans"), (tasks, "tasks")):
        offer(commands, command, name, f"temporal-plan package {name} my-server", connection=False)
    rendering.add_to(commands)
    offer(
        commands,
        create,
        "create",
        "temporal-plan package create my-server",
        connection=False,
    )
    offer(
        commands,
        pack,
        "pack",
        "temporal-plan package pack my-server --output /tmp",
        connection=False,
    )
    offer(
        commands,
        import_,
        "import",
        "temporal-plan package import --cluster main --dry-run",
        "temporal-plan package import --cluster main --kube-namespace data",
    )
