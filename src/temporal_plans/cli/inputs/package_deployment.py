"""Deployments of packages, from a folder or an archive and the options of the command."""

from pathlib import Path

import typer

from temporal_plans.cli.inputs.package_flags import PackageFlags
from temporal_plans.cli.inputs.pairs import pairs
from temporal_plans.cli.terminal.output import print_note
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.download import is_address
from temporal_plans.loading.packages.folder import read_folder, visible
from temporal_plans.loading.packages.reader import package_files, read_files
from temporal_plans.loading.packages.verification import verify


def package_deployment(
    source: str | None,
    service: str,
    flags: PackageFlags,
    *,
    by: str = "",
    reason: str = "",
) -> PackageDeployment:
    """Return the deployment of a package, verified, or without ``source`` a change of what is
    installed. Prints a note for each warning. Raises SpecError, typer.BadParameter."""
    deployment = PackageDeployment(
        name=service,
        parameters=flags.parameters(),
        secrets=pairs(flags.secret_parameter or [], "--secret-parameter"),
        instance=flags.instance,
        cluster=flags.cluster,
        namespace=flags.kube_namespace,
        allow_downgrade=flags.allow_downgrade,
        by=by,
        reason=reason,
    )
    if source is None:
        if not service:
            raise typer.BadParameter("name a service file or a package, or a service with -s")
        return deployment
    files = _files(source)
    read = read_files(files, source)
    result = verify(read)
    if not result.valid:
        raise SpecError([one.as_reason() for one in result.errors], source=source)
    for warning in result.warnings:
        print_note(str(warning))
    name = service or read.package.name
    return deployment.but(name=name, package=read.package, archive=write_archive(files))


def _files(source: str) -> dict[str, bytes]:
    if not is_address(source) and Path(source).is_dir():
        return read_folder(Path(source), visible)
    return package_files(source)
