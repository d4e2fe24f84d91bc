"""Commands about environments: apply, status, explain, suppressions, windows, plans."""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ByOption, ConnectionFlags, JsonOption, ReasonOption

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.verbs.fleets import EnvironmentRequest

_Files = Annotated[
    list[Path],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Documents: products, channels, pipelines, environments, states, suppressions; "
        "repeatable.",
    ),
]
_Subjects = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME...]",
        help="environment/NAME, product/NAME, pipeline/PRODUCT or channel/NAME. [default: all]",
    ),
]
_Places = Annotated[
    list[str] | None, typer.Argument(metavar="[ENV...]", help="Environments. [default: all]")
]
_Place = Annotated[
    str, typer.Argument(metavar="ENV[/ENTITY]", help="An environment, or one of its entities.")
]
_Entity = Annotated[str, typer.Argument(metavar="ENV/ENTITY", help="An entity.")]
_Environment = Annotated[str, typer.Argument(metavar="ENV", help="An environment.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The id, as fleet status shows it.")]
_IdOption = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="Its id. [default: a new one]")
]
_From = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="From when. [default: now]")
]
_SECOND = timedelta(seconds=1)


def apply(
    flags: ConnectionFlags,
    files: _Files,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Create or change environments and products as documents say.

    Documents of products are applied before those of environments. Releases are immutable: a
    document may add releases and recalls, and change channels by none.
    """
    from temporal_plans.cli.actions.fleet_applying import apply_files, read_files
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.terminal.output import print_json, print_line, written

    documents = read_files(files)
    done = call_client(flags, lambda client: apply_files(client, documents, by or whoami(), reason))
    if json:
        print_json([{"subject": one.subject, **written(one.outcome)} for one in done])
    else:
        for one in done:
            print_line(f"{one.subject}: {one.outcome.message}")


def diff(
    flags: ConnectionFlags,
    files: _Files,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if there are differences.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show how documents differ from what is there. Changes nothing."""
    from temporal_plans.cli.actions.fleet_applying import changes, read_files
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.terminal.output import print_json, print_line, print_lines

    documents = read_files(files)
    lines = call_client(flags, lambda client: changes(client, documents))
    if json:
        print_json({"differs": bool(lines), "lines": lines})
    elif lines:
        print_lines(lines)
    else:
        print_line("no differences")
    raise typer.Exit(1 if lines and exit_code else 0)


def export(flags: ConnectionFlags, subjects: _Subjects = None) -> None:
    """Print environments, products, pipelines and channels as documents for fleet apply."""
    from temporal_plans.cli.actions.fleet_applying import SUBJECTS, exported
    from temporal_plans.cli.actions.running import call_client

    wanted = subjects or []
    for one in wanted:
        if one.partition("/")[0] not in SUBJECTS:
            kinds = ", ".join(SUBJECTS)
            raise typer.BadParameter(f"{one!r}: write KIND/NAME, with one of: {kinds}")
    documents = call_client(flags, lambda client: exported(client, wanted))
    typer.echo("---\n".join(documents), nl=False)


def status(
    flags: ConnectionFlags,
    environments: _Places = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print the table again whenever it changes.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show every entity: its version, what is wanted, its plan, and why nothing happens."""
    from temporal_plans.cli.actions.fleet_showing import show_status
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.inputs.fleet_names import place_of

    names = [place_of(one, entity=False).environment for one in environments or ()]
    code = call_client_until_interrupted(
        flags,
        lambda client: show_status(client, names, watch=watch, as_json=json),
        interrupted=0,
    )
    raise typer.Exit(code)


def explain(
    flags: ConnectionFlags,
    place: Annotated[
        str,
        typer.Argument(
            metavar="ENV/ENTITY",
            help="An entity, or a release: group:name/1.2.3.",
        ),
    ],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="At another time. [default: now]")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show why an entity or a release is where it is, and what would change that.

    Of an entity: every release that it could have, with what every constraint says of it, what
    would cure it, and when it is looked at again. Also when there is nothing to do.

    Of a release, PRODUCT/VERSION: where it is in the pipeline, and which canary keeps it there.
    """
    from datetime import UTC, datetime

    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of, release_of
    from temporal_plans.cli.inputs.times import time_of
    from temporal_plans.cli.terminal.fleet_status_lines import explanation_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.cli.terminal.promotion_lines import release_explanation

    time = time_of(at, "--at") or datetime.now(UTC)
    if ":" in place:
        product, version = release_of(place)
        found = call_client(flags, lambda client: client.explain_release(product, version, time))
        if json:
            print_json(found)
        else:
            print_lines(release_explanation(found))
        return
    where = place_of(place, entity=True)
    answer = call_client(
        flags, lambda client: client.explain_entity(where.environment, where.entity or "", time)
    )
    if json:
        print_json(answer)
    else:
        print_lines(explanation_lines(answer))


class _GraphForm(StrEnum):
    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"


def graph(
    flags: ConnectionFlags,
    environment: _Environment,
    form: Annotated[
        _GraphForm, typer.Option("--format", help="DOT and Mermaid are for other programs.")
    ] = _GraphForm.TEXT,
    json: JsonOption = False,
) -> None:
    """Show which entities need which, their versions, cycles, and what is out of range."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.terminal.fleet_graph import dot, graph_lines, mermaid
    from temporal_plans.cli.terminal.output import print_json, print_lines

    where = place_of(environment, entity=False)
    found = call_client(flags, lambda client: client.fleet_graph(where.environment))
    if json:
        print_json(found)
    elif form is _GraphForm.TEXT:
        print_lines(graph_lines(found))
    else:
        typer.echo("\n".join(dot(found) if form is _GraphForm.DOT else mermaid(found)))


def plans(flags: ConnectionFlags, place: _Place, json: JsonOption = False) -> None:
    """List the plans of an environment or an entity, newest first, with their errors."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.terminal.fleet_status_lines import plan_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines

    where = place_of(place)
    found = call_client(
        flags, lambda client: client.fleet_plans(where.environment, where.entity or "")
    )
    if json:
        print_json(found)
    else:
        print_lines(plan_lines(where.environment, found.rows))


def log(
    flags: ConnectionFlags,
    subject: Annotated[
        str, typer.Argument(metavar="ENV|PRODUCT", help="An environment, or a group:name.")
    ],
    json: JsonOption = False,
) -> None:
    """Show the requests to an environment or a product: time, author, reason and outcome."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of, product_of
    from temporal_plans.cli.terminal.listing import log_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines

    if ":" in subject:
        product = product_of(subject)
        found = call_client(flags, lambda client: client.product_log(product))
    else:
        environment = place_of(subject, entity=False).environment
        found = call_client(flags, lambda client: client.environment_log(environment))
    if json:
        print_json(found)
    else:
        print_lines(log_lines(found, of="environment" if ":" not in subject else "product"))


def suppress(
    flags: ConnectionFlags,
    place: _Place,
    duration: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="For how long. [default: until removed]"),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Up to when.")
    ] = None,
    start: _From = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the plans that run when it takes effect.")
    ] = False,
    id: _IdOption = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Stop plans of an environment or an entity. Plans that run go on, unless with --cancel."""
    from temporal_plans.cli.inputs.durations import duration_of
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.inputs.times import time_of
    from temporal_plans.messages.fleets.stops import Suppress

    where = place_of(place)
    request = Suppress(
        id=id,
        entity=where.entity,
        start=time_of(start, "--from"),
        end=time_of(until, "--until"),
        duration=duration_of(duration, "--for", minimum=_SECOND) if duration else None,
        cancel_active=cancel,
        **author(by, reason),
    )
    ask_environment(flags, where.environment, request, json=json)


def unsuppress(
    flags: ConnectionFlags,
    environment: _Environment,
    id: _Id,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Remove a suppression, whatever made it."""
    from temporal_plans.messages.fleets.stops import Unsuppress

    ask_environment(flags, environment, Unsuppress(id=id, **author(by, reason)), json=json)


def override(
    flags: ConnectionFlags,
    place: _Place,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long.")
    ] = "1h",
    start: _From = None,
    downtime: Annotated[
        bool, typer.Option("--downtime", help="Admit changes that need downtime, too.")
    ] = False,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="ID", help="Remove an override instead.")
    ] = None,
    id: _IdOption = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Open the maintenance windows of an environment or an entity once. Needs --reason."""
    from temporal_plans.cli.inputs.durations import duration_of
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.inputs.times import time_of
    from temporal_plans.domain.fleets.suppressions import WindowClass
    from temporal_plans.messages.fleets.stops import OverrideWindows, RemoveOverride

    where = place_of(place)
    if remove is not None:
        gone = RemoveOverride(id=remove, **author(by, reason))
        ask_environment(flags, where.environment, gone, json=json)
        return
    request = OverrideWindows(
        id=id,
        entity=where.entity,
        admits=WindowClass.DOWNTIME if downtime else WindowClass.NO_DOWNTIME,
        start=time_of(start, "--from"),
        duration=duration_of(duration, "--for", minimum=_SECOND),
        **author(by, reason),
    )
    ask_environment(flags, where.environment, request, json=json)


def cancel(
    flags: ConnectionFlags,
    place: _Place,
    suppress: Annotated[
        str, typer.Option("--suppress", metavar="DURATION", help="Issue no plan again for so long.")
    ] = "30m",
    no_suppress: Annotated[
        bool, typer.Option("--no-suppress", help="The same plan may be issued again at once.")
    ] = False,
    command: Annotated[
        bool, typer.Option("--command", help="Only the command that waits; the plan goes on.")
    ] = False,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Cancel the running plan of an entity, or all of an environment. Its steps may end first.
    Where no plan of the entity runs, the command that waits is withdrawn."""
    from temporal_plans.cli.inputs.durations import duration_of
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.messages.fleets.commands import CancelPlans

    where = place_of(place)
    length = None if no_suppress else duration_of(suppress, "--suppress", minimum=_SECOND)
    who = author(by, reason)
    request = CancelPlans(entity=where.entity, suppress=length, command=command, **who)
    ask_environment(flags, where.environment, request, json=json)


class _End(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


def resolve(
    flags: ConnectionFlags,
    place: _Entity,
    outcome: Annotated[_End, typer.Option("--outcome", help="How its plan ended.")],
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="What is installed now.")
    ] = None,
    nothing: Annotated[
        bool, typer.Option("--nothing-installed", help="Nothing is installed now.")
    ] = False,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Say how a plan ended that reads UNKNOWN: it blocks its entity until then."""
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.domain.fleets.plans import EndStatus
    from temporal_plans.messages.fleets.commands import ResolvePlan

    where = place_of(place, entity=True)
    request = ResolvePlan(
        entity=where.entity or "",
        outcome=EndStatus[outcome.name],
        version=version,
        nothing_installed=nothing,
        **author(by, reason),
    )
    ask_environment(flags, where.environment, request, json=json)


class _Command(StrEnum):
    INSTALL = "install"
    UNINSTALL = "uninstall"
    ENFORCE_CONFIG = "enforce-config"
    ENFORCE_VERSION = "enforce-version"
    RESTART = "restart"


def command(
    flags: ConnectionFlags,
    place: _Entity,
    type: Annotated[_Command, typer.Argument(metavar="COMMAND", help="What is to be done.")],
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="Of install and enforce-version."),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Give a break-glass command, which no constraint holds back. Needs --reason."""
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.domain.fleets.plans import CommandType
    from temporal_plans.messages.fleets.commands import FleetCommand

    where = place_of(place, entity=True)
    request = FleetCommand(
        entity=where.entity or "",
        command=CommandType(type.value),
        version=version,
        **author(by, reason),
    )
    ask_environment(flags, where.environment, request, json=json)


def delete(
    flags: ConnectionFlags,
    subject: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="environment/NAME or product/NAME.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Also while plans run, or environments have it.")
    ] = False,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Forget an environment or a product. What is installed stays as it is."""
    from temporal_plans.cli.actions.fleet_showing import print_outcome
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.messages.fleets.requests import DeleteRequest

    kind, _, name = subject.partition("/")
    if kind not in ("environment", "product") or not name:
        raise typer.BadParameter(f"{subject!r}: write environment/NAME or product/NAME")
    request = DeleteRequest(force=force, **author(by, reason))
    if kind == "environment":
        ask_environment(flags, name, request, json=json)
        return
    outcome = call_client(flags, lambda client: client.delete_product(name, request))
    print_outcome(outcome, as_json=json)


def author(by: str | None, reason: str) -> dict[str, str]:
    """Return the fields of a request that say who asks, and why."""
    from temporal_plans.cli.inputs.author import whoami

    return {"by": by or whoami(), "reason": reason}


def ask_environment(
    flags: ConnectionFlags, environment: str, request: "EnvironmentRequest", *, json: bool
) -> None:
    """Give a request to an environment, and print its outcome."""
    from temporal_plans.cli.actions.fleet_showing import print_outcome
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of

    place_of(environment, entity=False)

    async def asked(client: "PlansClient") -> object:
        return await client.ask_environment(environment, request)

    print_outcome(call_client(flags, asked), as_json=json)


def add_to(fleet: typer.Typer) -> None:
    offer(
        fleet,
        apply,
        "apply",
        "temporal-plan fleet apply -f products.yml -f prod.yml --reason 'a new region'",
    )
    offer(fleet, diff, "diff", "temporal-plan fleet diff -f prod.yml --exit-code")
    offer(
        fleet,
        export,
        "export",
        "temporal-plan fleet export environment/prod",
        "temporal-plan fleet export",
    )
    offer(
        fleet,
        status,
        "status",
        "temporal-plan fleet status",
        "temporal-plan fleet status prod --watch",
    )
    offer(
        fleet,
        explain,
        "explain",
        "temporal-plan fleet explain prod/web",
        "temporal-plan fleet explain shop:web/1.2.3",
    )
    offer(fleet, plans, "plans", "temporal-plan fleet plans prod/web")
    offer(
        fleet, log, "log", "temporal-plan fleet log prod", "temporal-plan fleet log shop:web --json"
    )
    offer(
        fleet,
        graph,
        "graph",
        "temporal-plan fleet graph prod",
        "temporal-plan fleet graph prod --format mermaid",
    )
    offer(
        fleet,
        suppress,
        "suppress",
        "temporal-plan fleet suppress prod --for 2h --reason 'an incident'",
        "temporal-plan fleet suppress prod/web --until 2026-01-05T08:30:00Z --cancel",
    )
    offer(fleet, unsuppress, "unsuppress", "temporal-plan fleet unsuppress prod manual-1")
    offer(
        fleet,
        override,
        "override",
        "temporal-plan fleet override prod --for 30m --reason 'a security fix'",
    )
    offer(fleet, cancel, "cancel", "temporal-plan fleet cancel prod/web --reason 'too early'")
    offer(
        fleet,
        resolve,
        "resolve",
        "temporal-plan fleet resolve prod/web --outcome succeeded --reason 'I looked'",
    )
    offer(
        fleet,
        command,
        "command",
        "temporal-plan fleet command prod/web enforce-version --version 1.2.3 --reason 'a fix'",
    )
    offer(fleet, delete, "delete", "temporal-plan fleet delete environment/prod")
