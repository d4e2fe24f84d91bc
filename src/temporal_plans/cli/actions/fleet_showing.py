"""`temporal plan fleet status`, and the outcomes of requests."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from temporal_plans.cli.terminal.fleet_status_lines import status_lines
from temporal_plans.cli.terminal.output import print_json, print_line, print_lines, written
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.fleets.explanation import Explanation
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.messages.fleets.change_requests import ChangeRequest
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus

_POLL_INTERVAL = 1.0  # seconds

Fleet = dict[str, EnvironmentStatus | PlansError]


def print_outcome(outcome: object, *, as_json: bool) -> None:
    """Print the outcome of a request."""
    assert isinstance(outcome, Outcome)
    if as_json:
        print_json(outcome)
    else:
        print_line(outcome.message)


async def change_requests(
    client: PlansClient, names: Sequence[str], *, closed: bool
) -> list[tuple[str, ChangeRequest]]:
    """Return the change requests of some environments, or of all, each with its environment."""
    wanted = names or await client.environments()
    return [
        (name, one)
        for name in wanted
        for one in (await client.change_requests(name)).requests
        if closed or one.open
    ]


async def show_status(
    client: PlansClient, names: Sequence[str], *, watch: bool, as_json: bool
) -> int:
    """Print the table of the fleet; with ``watch`` again whenever it changes, until interrupted.
    Returns the exit code: 1 when an environment does not answer."""
    fleet = await _asked(client, names)
    _print(fleet, as_json=as_json)
    while watch:
        await asyncio.sleep(_POLL_INTERVAL)
        newer = await _asked(client, names)
        if _compared(newer) != _compared(fleet):
            if not as_json:
                print_line()
            _print(newer, as_json=as_json)
        fleet = newer
    return 1 if any(isinstance(one, PlansError) for one in fleet.values()) else 0


async def explained_entity(client: PlansClient, place: str) -> Explanation | None:
    """Return why the entity ``ENV/ENTITY`` is as it is; None when there is no such environment."""
    environment, slash, entity = place.partition("/")
    if not slash or environment not in await client.environments():
        return None
    return await client.explain_entity(environment, entity, datetime.now(UTC))


async def _asked(client: PlansClient, names: Sequence[str]) -> Fleet:
    fleet = await client.fleet(*names)
    if len(names) == 1 and isinstance(error := fleet[names[0]], PlansError):
        raise error
    return fleet


def _compared(fleet: Fleet) -> dict[str, object]:
    return {name: str(one) if isinstance(one, PlansError) else one for name, one in fleet.items()}


def _print(fleet: Fleet, *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"name": name, "error": str(one)} if isinstance(one, PlansError) else written(one)
                for name, one in fleet.items()
            ]
        )
    else:
        print_lines(status_lines(fleet, datetime.now(UTC)))
