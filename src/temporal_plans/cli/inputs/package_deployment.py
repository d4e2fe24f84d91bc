"""Deployments of packages, from a folder or an archive and the options of the command."""

import typer

from temporal_plans.cli.inputs.package_flags import PackageFlags
from temporal_plans.cli.inputs.pairs import pairs
from temporal_plans.cli.terminal.output import print_note
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.nested import PackageTree, ResolvedPackage, load_tree
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
        create_namespace=flags.create_namespace,
        allow_downgrade=flags.allow_downgrade,
        settings=flags.settings(),
        by=by,
        reason=reason,
    )
    if source is None:
        if not service:
            raise typer.BadParameter("name a service file or a package, or a service with -s")
        return deployment
    tree = verified_tree(source)
    return deployment.but(
        name=service or tree.root.package.name,
        package=tree.root.package,
        archive=tree.root.archive,
        nested=tuple(each.archive for each in tree.packages.values() if each is not tree.root),
    )


def verified_tree(source: str) -> PackageTree:
    """Return a package with those nested in it, verified. Prints a note for each warning. Raises
    SpecError."""
    tree = load_tree(source)
    for each in tree.packages.values():
        _verify(each, "" if each is tree.root else f"{each.source}: ")
    return tree


def _verify(resolved: ResolvedPackage, where: str) -> None:
    """Print a note for each warning. Raises SpecError with all errors."""
    result = verify(resolved.read)
    if not result.valid:
        raise SpecError([one.as_reason() for one in result.errors], source=resolved.source)
    for warning in result.warnings:
        print_note(f"{where}{warning}")
