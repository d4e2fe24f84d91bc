"""Commands about change requests: requests, approve, reject, hold."""

from typing import Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.commands.fleet_environments import ask_environment, author
from temporal_plans.cli.inputs.flags import ByOption, ConnectionFlags, JsonOption, ReasonOption

_Environment = Annotated[str, typer.Argument(metavar="ENV", help="An environment.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="The id, as fleet requests shows it.")]


def requests(
    flags: ConnectionFlags,
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV...]", help="Environments. [default: all]")
    ] = None,
    closed: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    json: JsonOption = False,
) -> None:
    """List the change requests that wait, with what would be planned."""
    from temporal_plans.cli.actions.fleet_showing import change_requests
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.terminal.output import print_json, print_lines, written
    from temporal_plans.cli.terminal.request_lines import request_lines

    names = [place_of(one, entity=False).environment for one in environments or ()]
    found = call_client(flags, lambda client: change_requests(client, names, closed=closed))
    if json:
        print_json([{"environment": name, **written(one)} for name, one in found])
    else:
        print_lines(request_lines(found))


def approve(
    flags: ConnectionFlags,
    environment: _Environment,
    id: _Id,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Approve a change request. It is carried out when that was the last approval that it needs."""
    from temporal_plans.messages.fleets.change_requests import ApproveChange

    ask_environment(flags, environment, ApproveChange(id=id, **author(by, reason)), json=json)


def reject(
    flags: ConnectionFlags,
    environment: _Environment,
    id: _Id,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Reject a change request; its author withdraws it. Needs --reason, but to withdraw."""
    from temporal_plans.messages.fleets.change_requests import RejectChange

    ask_environment(flags, environment, RejectChange(id=id, **author(by, reason)), json=json)


def hold(
    flags: ConnectionFlags,
    environment: _Environment,
    id: _Id,
    release: Annotated[
        bool, typer.Option("--release", help="Let it go on: an approved one is carried out.")
    ] = False,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Hold a change request: it is not carried out, even when it is approved."""
    from temporal_plans.messages.fleets.change_requests import HoldChange

    request = HoldChange(id=id, held=not release, **author(by, reason))
    ask_environment(flags, environment, request, json=json)


def add_to(fleet: typer.Typer) -> None:
    offer(
        fleet,
        requests,
        "requests",
        "temporal-plan fleet requests",
        "temporal-plan fleet requests prod --all",
    )
    offer(
        fleet,
        approve,
        "approve",
        "temporal-plan fleet approve prod change-3 --by eve --reason 'as planned'",
    )
    offer(
        fleet,
        reject,
        "reject",
        "temporal-plan fleet reject prod change-3 --reason 'not before the fair'",
    )
    offer(
        fleet,
        hold,
        "hold",
        "temporal-plan fleet hold prod change-3 --reason 'after the fair'",
        "temporal-plan fleet hold prod change-3 --release",
    )
