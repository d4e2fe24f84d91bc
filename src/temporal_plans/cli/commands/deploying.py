"""Commands that change a service: deploy, diff, rollback, uninstall."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs import completion
from temporal_plans.cli.inputs.flags import (
    ByOption,
    CanaryOption,
    ConnectionFlags,
    EnvFileOption,
    EnvOption,
    JsonOption,
    LenientOption,
    MaxUnavailableOption,
    ReasonOption,
    ServiceOption,
    SourceArgument,
    TimeoutOption,
    UnusedOption,
    WaitOption,
)
from temporal_plans.cli.inputs.package_flags import PackageFlags
from temporal_plans.cli.inputs.sources import existing, is_package

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.messages.services import ChangeView

PoolOption = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="NAME",
        help="The pool of agents. [default: the pool that the service has, else 'default']",
        autocompletion=completion.pools,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the changes and the plan; change nothing.")
]


def deploy(
    flags: ConnectionFlags,
    package: PackageFlags,
    file: SourceArgument = None,
    env: EnvOption = None,
    env_file: EnvFileOption = None,
    pool: PoolOption = None,
    dry_run: DryRunOption = False,
    canary: CanaryOption = None,
    max_unavailable: MaxUnavailableOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    lenient: LenientOption = False,
    verbose: UnusedOption = False,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Install a service from its file or a package, or update it.

    A change is accepted or refused as a whole: when a part of it is not possible, every reason is
    printed, and the configuration before stays in force. A deployment supersedes an unfinished one,
    and continues from the state that each pod has reached.

    Values ENABLE_BACKOFF, FRAMEWORK_INITIAL_BACKOFF, FRAMEWORK_BACKOFF_FACTOR and
    FRAMEWORK_MAX_LAUNCH_DELAY set how failed tasks are retried,
    ENABLE_AUTOMATIC_POD_REPLACEMENT, PERMANENT_FAILURE_TIMEOUT_SECS and MIN_REPLACE_DELAY_SECS when
    a pod is replaced on other resources.

    A package is a folder, an archive (.tgz) or the address of one. It is installed under its name,
    or that of -s; without a package, -s and -p change the parameters of what is installed. What
    differs decides which of its plans runs.
    """
    if file is None or is_package(file):
        raise typer.Exit(
            _deploy_package(
                flags, file, package, service, _Following(dry_run, wait, timeout, json), by, reason
            )
        )
    from temporal_plans.cli.actions.deployed import report_deployment, report_preview
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.deployment import deployment
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.cli.inputs.files import ServiceFileOptions
    from temporal_plans.cli.inputs.rollouts import rollout_of

    _refuse_package_options(package)
    _check_dry_run(dry_run=dry_run, wait=wait)
    limit = timeout_of(timeout, waits=wait)
    requested = deployment(
        ServiceFileOptions(existing(file), env, env_file, lenient, verbose),
        pool=pool,
        rollout=rollout_of(canary, max_unavailable),
        by=by or whoami(),
        reason=reason,
    )

    async def deployed(client: "PlansClient") -> int:
        if dry_run:
            return report_preview(await client.preview(requested), json=json)
        result = await client.deploy(requested)
        name = requested.spec.name
        return await report_deployment(client, name, result, wait=wait, timeout=limit, json=json)

    raise typer.Exit(call_client_until_interrupted(flags, deployed))


class _Following(NamedTuple):
    """How a command goes on after its request."""

    dry_run: bool
    wait: bool
    timeout: str | None
    json: bool


def _deploy_package(
    flags: ConnectionFlags,
    source: str | None,
    package: PackageFlags,
    service: str | None,
    following: _Following,
    by: str | None,
    reason: str,
) -> int:
    from temporal_plans.cli.actions.deploying_packages import (
        deploy_package,
        report_package_preview,
    )
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.cli.inputs.package_deployment import package_deployment

    dry_run, wait, timeout, json = following
    _check_dry_run(dry_run=dry_run, wait=wait)
    limit = timeout_of(timeout, waits=wait)
    requested = package_deployment(
        source, (service or "").strip("/"), package, by=by or whoami(), reason=reason
    )

    async def deployed(client: "PlansClient") -> int:
        if dry_run:
            preview = await client.preview_package(requested)
            return await report_package_preview(client, preview, json=json)
        return await deploy_package(client, requested, wait=wait, timeout=limit, json=json)

    return call_client_until_interrupted(flags, deployed)


def _diff_package(
    flags: ConnectionFlags,
    source: str | None,
    package: PackageFlags,
    service: str | None,
    exit_code: bool,
    json: bool,
) -> int:
    from temporal_plans.cli.actions.deploying_packages import report_package_preview
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.package_deployment import package_deployment

    requested = package_deployment(source, (service or "").strip("/"), package)

    async def previewed(client: "PlansClient") -> int:
        preview = await client.preview_package(requested)
        code = await report_package_preview(client, preview, json=json)
        differs = preview.change is not None and bool(preview.change.plan)
        return 1 if code or (exit_code and differs) else 0

    return call_client_until_interrupted(flags, previewed)


def _refuse_package_options(package: PackageFlags) -> None:
    """Raise BadParameter for options that a service file makes meaningless."""
    if given := package.given:
        raise typer.BadParameter(f"{given[0]} is for packages; a service file has its own values")


def _check_dry_run(*, dry_run: bool, wait: bool) -> None:
    if dry_run and wait:
        raise typer.BadParameter("--dry-run starts no plan to wait for; leave out --wait")


def diff(
    flags: ConnectionFlags,
    package: PackageFlags,
    file: SourceArgument = None,
    env: EnvOption = None,
    env_file: EnvFileOption = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 also if something would change.")
    ] = False,
    lenient: LenientOption = False,
    verbose: UnusedOption = False,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Show what `deploy` of a file would restart, add, remove or refuse, and why.

    Of a package: its parameters, the plan that would run, and what that would change of each object
    in the cluster. Exits with 0 when the change is allowed, and with 1 when it is refused.
    """
    if file is None or is_package(file):
        raise typer.Exit(_diff_package(flags, file, package, service, exit_code, json))
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.deployment import deployment
    from temporal_plans.cli.inputs.files import ServiceFileOptions
    from temporal_plans.cli.terminal.change_lines import changes_anything, problem_text, show_change
    from temporal_plans.cli.terminal.output import print_error, print_json

    _refuse_package_options(package)
    requested = deployment(ServiceFileOptions(existing(file), env, env_file, lenient, verbose))

    async def previewed(client: "PlansClient") -> "ChangeView":
        return await client.preview(requested)

    change = call_client(flags, previewed)
    if json:
        print_json(change)
    else:
        show_change(change)
    if change.problems:
        print_error(problem_text(change))
    differs = exit_code and changes_anything(change)
    raise typer.Exit(1 if change.problems or differs else 0)


def rollback(
    flags: ConnectionFlags,
    number: Annotated[
        str,
        typer.Argument(
            metavar="[NUMBER]",
            help="A configuration, by number or id. [default: the previous]",
            autocompletion=completion.configurations,
        ),
    ] = "",
    dry_run: DryRunOption = False,
    canary: CanaryOption = None,
    max_unavailable: MaxUnavailableOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Deploy an earlier configuration again, as a new configuration with its own number."""
    from temporal_plans.cli.actions.deployed import report_deployment, report_preview
    from temporal_plans.cli.actions.deploying_packages import roll_package_back
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.cli.inputs.names import resolve_service
    from temporal_plans.cli.inputs.rollouts import rollout_of

    _check_dry_run(dry_run=dry_run, wait=wait)
    limit = timeout_of(timeout, waits=wait)
    rollout = rollout_of(canary, max_unavailable)

    async def rolled_back(client: "PlansClient") -> int:
        name = await resolve_service(client, service)
        if await client.content_of(name) == "package":
            return await roll_package_back(
                client, name, number, by=by or whoami(), reason=reason,
                dry_run=dry_run, wait=wait, timeout=limit, json=json,
            )  # fmt: skip
        if dry_run:
            change = await client.preview_rollback(name, number, rollout=rollout)
            return report_preview(change, json=json)
        result = await client.rollback(
            name, number, rollout=rollout, by=by or whoami(), reason=reason
        )
        return await report_deployment(client, name, result, wait=wait, timeout=limit, json=json)

    raise typer.Exit(call_client_until_interrupted(flags, rolled_back))


def uninstall(
    flags: ConnectionFlags,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    volumes: Annotated[
        bool,
        typer.Option("--volumes", help="Of a package: delete the claims of its pods as well."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Of a package: leave out its own plan `cleanup`.")
    ] = False,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Uninstall a service: kill its tasks, release its resources, destroy its volumes.

    Its plan `deploy` shows the progress. A package's plan `cleanup` runs, and then what is left of
    its objects is deleted; what its pods claimed stays, unless --volumes. An uninstall can't be
    undone.
    """
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.actions.uninstalling import uninstall_service
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.messages.owners import UninstallRequest

    request = UninstallRequest(volumes=volumes, force=force, by=by or whoami(), reason=reason)
    limit = timeout_of(timeout, waits=wait)
    raise typer.Exit(
        call_client_until_interrupted(
            flags,
            lambda client: uninstall_service(
                client, service, request, yes=yes, wait=wait, timeout=limit, json=json
            ),
        )
    )


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        deploy,
        "deploy",
        "temporal-plan deploy svc.yml --values svc.env --wait",
        "temporal-plan deploy svc.yml -e HELLO_COUNT=2 --reason 'more load'",
        "temporal-plan deploy svc.yml --values svc.env --dry-run",
        "temporal-plan deploy svc.yml --values svc.env --canary 1 --max-unavailable 3",
        "temporal-plan deploy svc.yml --canary web=2 --max-unavailable web=5",
        "temporal-plan deploy ./store -s shop -p SIZE=3 --cluster prod --wait",
        "temporal-plan deploy -s shop -p SIZE=5 -p LEVEL- --wait",
        aliases=("install",),
    )
    offer(
        app,
        diff,
        "diff",
        "temporal-plan diff svc.yml --values svc.env",
        "temporal-plan diff svc.yml -e HELLO_COUNT=2 --exit-code --json",
        "temporal-plan diff ./store -p SIZE=5",
        "temporal-plan diff -s store -p SIZE=5",
    )
    offer(
        app,
        rollback,
        "rollback",
        "temporal-plan rollback --wait --reason 'error rate rises'",
        "temporal-plan rollback 3 -s hello-world",
        "temporal-plan rollback --dry-run",
    )
    offer(
        app,
        uninstall,
        "uninstall",
        "temporal-plan uninstall -s hello-world",
        "temporal-plan uninstall -s hello-world --yes --wait",
    )
