"""What must hold of a fleet that has come to rest."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from acceptance.fleet_soak.catalogue import NEEDS, Catalogues
from acceptance.fleet_soak.environments import entity_names
from acceptance.fleet_soak.ledger import Ledger
from acceptance.fleet_soak.oracle import Oracle
from acceptance.fleet_soak.place import Place
from acceptance.fleet_soak.recorded import Recorded
from acceptance.histories import assert_all_replays
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.standing import standing
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.plans import PlanRow

SOON = timedelta(minutes=5)
"""What an environment waits for within this is not over yet."""

PLANS = "WorkflowType = 'Plan'"


async def restless(place: Place, names: Sequence[str]) -> list[str]:
    """What still goes on."""
    now = datetime.now(UTC)
    found: list[str] = []
    for name, status in (await place.statuses(names)).items():
        found += [f"{name}: {one}" for one in status.problems]
        for row in status.rows:
            if row.plan_status or row.standing.outcome in (Outcome.ISSUE, Outcome.ACTIVE):
                found.append(f"{name}/{row.entity}: {row.plan_status} {row.standing.outcome}")
        if status.next_wakeup is not None and status.next_wakeup < now + SOON:
            found.append(f"{name} decides again at {status.next_wakeup}")
    for address in place.addresses:
        gateway = await place.gateway(address)
        open_ = await gateway.list(f"{PLANS} AND ExecutionStatus = 'Running'", 1000)
        found += [f"{run.id} is open" for run in open_]
    return found


async def fleet_faults(place: Place, names: Sequence[str], catalogues: Catalogues) -> list[str]:
    """Recalled releases, dependencies, explanations."""
    client = await place.client()
    recalls = {product: (await client.releases(product)).recalls for product in NEEDS}
    oracle = Oracle(catalogues, recalls)
    faults: list[str] = []
    for status in (await place.statuses(names)).values():
        faults += oracle.faults(status, datetime.now(UTC))
        faults += await _explained(place, status)
    said = await place.command("fleet", "explain", f"{names[0]}/{entity_names()[0]}")
    if said.code != 0 or "release" not in said.out:
        faults.append(str(said))
    return faults


async def _explained(place: Place, status: EnvironmentStatus) -> list[str]:
    """Each entity has an explanation, which is what ``decide`` says of it from nothing."""
    client = await place.client()
    faults: list[str] = []
    for row in status.rows:
        answer = await client.explain_entity(status.name, row.entity, datetime.now(UTC))
        found = standing(answer.decision, row.standing)
        if not found.same_as(row.standing):
            faults.append(f"{status.name}/{row.entity} is {row.standing}, decided again {found}")
        if not row.standing.code or not answer.candidates:
            faults.append(f"{status.name}/{row.entity} is not explained: {answer}"[:500])
    return faults


async def plan_faults(
    place: Place, names: Sequence[str], ledger: Ledger, *, resolved: set[str]
) -> list[str]:
    """Each plan was carried out once, and each one that there was is listed."""
    rows = await place.plan_rows(names)
    faults = ledger.faults(rows, resolved=resolved)
    runs = Counter[str]()
    for address in place.addresses:
        client = await place.bare_client(address)
        runs.update([run.id async for run in client.list_workflows(PLANS)])
    faults += [f"{id} was started {count} times" for id, count in runs.items() if count > 1]
    faults += [f"{id} ran, and is listed nowhere" for id in runs.keys() - rows]
    for status in (await place.statuses(names)).values():
        faults += _installed(status, rows)
    return faults


def _installed(status: EnvironmentStatus, rows: dict[str, PlanRow]) -> list[str]:
    """What is installed is where the last plan led to that succeeded."""
    faults: list[str] = []
    for row in status.rows:
        mine = [
            one
            for id, one in rows.items()
            if id.startswith(f"environment/{status.name}/")
            and one.entity == row.entity
            and one.status == "SUCCEEDED"
        ]
        last = max(mine, key=lambda one: one.number, default=None)
        led = last.to if last is not None else None
        if led != row.standing.installed:
            faults.append(
                f"{status.name}/{row.entity} is at {row.standing.installed}, led to {led}"
            )
    return faults


async def decision_faults(place: Place, names: Sequence[str]) -> tuple[list[str], Recorded]:
    """Histories replay, and decide what they recorded."""
    recorded = Recorded()
    client = await place.bare_client()
    for name in names:
        await recorded.read(client, name)
    faults = list(recorded.faults)
    for address in place.addresses:
        try:
            await assert_all_replays(address, plugin=place.plugin())
        except AssertionError as error:
            faults.append(str(error))
    return faults, recorded
