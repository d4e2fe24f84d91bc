"""Commands that change what a service is: deploy, diff, rollback, uninstall."""

from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import (
    ByOption,
    CanaryOption,
    ConnectionFlags,
    EnvFileOption,
    EnvOption,
    FileArgument,
    JsonOption,
    MaxUnavailableOption,
    ReasonOption,
    ServiceOption,
    WaitOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.messages.service import ChangeView

PoolOption = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="NAME",
        help="The agents that it runs on. [default: those it runs on, else 'default']",
    ),
]


def deploy(
    flags: ConnectionFlags,
    file: FileArgument,
    env: EnvOption = None,
    env_file: EnvFileOption = None,
    pool: PoolOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would change and the plan; change nothing."),
    ] = False,
    canary: CanaryOption = None,
    max_unavailable: MaxUnavailableOption = None,
    wait: WaitOption = False,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
) -> None:
    """Install a service from its file, or change it to what the file says now.

    A change is checked as a whole: with anything that can't be changed all of it is refused, every
    reason is told, and the configuration before stays in force. A change in the middle of a change
    goes on from where each pod is.

    Values ENABLE_BACKOFF, FRAMEWORK_INITIAL_BACKOFF, FRAMEWORK_BACKOFF_FACTOR and
    FRAMEWORK_MAX_LAUNCH_DELAY say how failed tasks are tried again,
    ENABLE_AUTOMATIC_POD_REPLACEMENT, PERMANENT_FAILURE_TIMEOUT_SECS and MIN_REPLACE_DELAY_SECS when
    a pod is replaced on other resources.
    """
    from temporal_plans.cli.change_lines import problem_text, show_change
    from temporal_plans.cli.deployed import told
    from temporal_plans.cli.deployment import deployment
    from temporal_plans.cli.output import complain, print_json
    from temporal_plans.cli.running import ask_until_interrupted
    from temporal_plans.cli.who import whoami
    from temporal_plans.messages.service import Rollout

    if dry_run and wait:
        raise typer.BadParameter("--dry-run begins nothing that could be waited for")
    what = deployment(
        file,
        env,
        env_file,
        pool=pool,
        rollout=Rollout(canary=canary, max_unavailable=max_unavailable),
        by=by or whoami(),
        reason=reason,
    )

    async def deployed(client: "PlansClient") -> int:
        if not dry_run:
            result = await client.deploy(what)
            return await told(client, what.spec.name, result, wait=wait, json=json)
        change = await client.preview(what)
        if json:
            print_json(change)
        else:
            show_change(change, plans=True)
        if change.problems:
            complain(problem_text(change))
        return 1 if change.problems else 0

    raise typer.Exit(ask_until_interrupted(flags, deployed))


def diff(
    flags: ConnectionFlags,
    file: FileArgument,
    env: EnvOption = None,
    env_file: EnvFileOption = None,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 also when something would change.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """What `deploy` of a file would restart, add, remove or refuse, and why.

    Ends with 0 when all of it is allowed, and with 1 when something is refused.
    """
    from temporal_plans.cli.change_lines import changes_anything, problem_text, show_change
    from temporal_plans.cli.deployment import deployment
    from temporal_plans.cli.output import complain, print_json
    from temporal_plans.cli.running import ask

    what = deployment(file, env, env_file)

    async def previewed(client: "PlansClient") -> "ChangeView":
        return await client.preview(what)

    change = ask(flags, previewed)
    if json:
        print_json(change)
    else:
        show_change(change)
    if change.problems:
        complain(problem_text(change))
    differs = exit_code and changes_anything(change)
    raise typer.Exit(1 if change.problems or differs else 0)


def rollback(
    flags: ConnectionFlags,
    number: Annotated[
        str,
        typer.Argument(
            metavar="[NUMBER]", help="A configuration, by number or id. [default: the one before]"
        ),
    ] = "",
    canary: CanaryOption = None,
    max_unavailable: MaxUnavailableOption = None,
    wait: WaitOption = False,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Deploy an earlier configuration again: an ordinary change, with a number of its own."""
    from temporal_plans.cli.deployed import told
    from temporal_plans.cli.names import the_service
    from temporal_plans.cli.running import ask_until_interrupted
    from temporal_plans.cli.who import whoami
    from temporal_plans.messages.service import Rollout

    rollout = Rollout(canary=canary, max_unavailable=max_unavailable)

    async def rolled_back(client: "PlansClient") -> int:
        name = await the_service(client, service)
        result = await client.rollback(
            name, number, rollout=rollout, by=by or whoami(), reason=reason
        )
        return await told(client, name, result, wait=wait, json=json)

    raise typer.Exit(ask_until_interrupted(flags, rolled_back))


def uninstall(
    flags: ConnectionFlags,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: WaitOption = False,
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Take a service away for good: its tasks, what it holds of agents, and its volumes.

    Its plan `deploy` shows how far that is. What was done can't be undone.
    """
    from temporal_plans.cli.running import ask_until_interrupted
    from temporal_plans.cli.uninstalling import uninstalled
    from temporal_plans.cli.who import whoami

    who = by or whoami()
    raise typer.Exit(
        ask_until_interrupted(
            flags,
            lambda client: uninstalled(client, service, yes=yes, wait=wait, by=who, reason=reason),
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
        aliases=("install",),
    )
    offer(
        app,
        diff,
        "diff",
        "temporal-plan diff svc.yml --values svc.env",
        "temporal-plan diff svc.yml -e HELLO_COUNT=2 --exit-code --json",
    )
    offer(
        app,
        rollback,
        "rollback",
        "temporal-plan rollback --wait --reason 'error rate rises'",
        "temporal-plan rollback 3 -s hello-world",
    )
    offer(
        app,
        uninstall,
        "uninstall",
        "temporal-plan uninstall -s hello-world",
        "temporal-plan uninstall -s hello-world --yes --wait",
    )
