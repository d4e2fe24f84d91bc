"""What must hold of the fleet when its story is over."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

from acceptance.fleet_kills.documents import ENVIRONMENTS
from acceptance.fleet_kills.sites import Site, Sites
from acceptance.fleet_kills.story import PLANS, Story
from acceptance.fleet_soak.place import Place
from acceptance.fleet_soak.recorded import Recorded
from acceptance.histories import assert_all_replays
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.results import DecideResult
from temporal_plans.domain.values.model import in_file_form
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.spokes import SpokeStatus, spoke_id

PLAN = "WorkflowType = 'Plan'"


async def faults_of(sites: Sites) -> list[str]:
    """All that is wrong."""
    parts = (_plans(sites), _runs(sites), _leftovers(sites), _decisions(sites), _histories(sites))
    return [fault for part in parts async for fault in part]


async def _plans(sites: Sites) -> AsyncIterator[str]:
    """Each plan is listed with its end, and its commands wrote what they did once."""
    hub = sites.hub
    rows = await hub.insist("the plans", lambda: hub.plan_rows(ENVIRONMENTS)) or {}
    for id in rows.keys() | PLANS.keys():
        wanted = PLANS[id][1] if id in PLANS else "nothing"
        listed = rows[id].status if id in rows else "nothing"
        if listed != wanted or (id in rows and _described(rows[id]) != _wanted(id)):
            yield f"{id} is listed as {rows.get(id)}, and is to be {wanted}: {PLANS.get(id)}"
    works = {work: f"{id} {status}" for id, (work, status) in PLANS.items()}
    homes = {name: site.directory for name, site in sites.spokes.items()}
    for fault in sites.journal.faults(works, homes):
        yield fault


def _described(row: PlanRow) -> tuple[str, str, str | None]:
    return row.intent, row.from_version or "none", row.to


def _wanted(id: str) -> tuple[str, str, str | None]:
    work, _ = PLANS[id]
    return work.intent, work.before, work.version


async def _runs(sites: Sites) -> AsyncIterator[str]:
    """Each plan was started once, at the spoke of its environment."""
    for where, place in sites.all.items():
        client = await place.bare_client()
        found = Counter([run.id async for run in client.list_workflows(PLAN)])
        wanted = Counter([id for id in PLANS if id.startswith(f"environment/{where}/")])
        if found != wanted:
            yield f"{where} started {found}, and was to start {wanted}"


async def _leftovers(sites: Sites) -> AsyncIterator[str]:
    """Nothing is open, unreported or reserved at a spoke."""
    for name, site in sites.spokes.items():
        try:
            await site.until(f"{name} has nothing left", lambda: _left(name, site), lambda f: not f)  # noqa: B023
        except AssertionError as error:
            yield str(error)


async def _left(name: str, site: Site) -> list[str]:
    client = await site.bare_client()
    record = client.get_workflow_handle(spoke_id(name))
    status: SpokeStatus = await record.query("status", result_type=SpokeStatus)
    pool: PoolStatus = await (await site.client()).pool()
    open = client.list_workflows("WorkflowType IN ('Plan', 'Phase', 'Step')")
    return [
        *(f"{one.entity}.{one.number} is not acknowledged: {one}" for one in status.plans),
        *(f"{one.key} is reserved" for one in pool.reservations),
        *[f"{run.id} is {run.status}" async for run in open if run.close_time is None],
    ]


# --- decisions ---


async def _decisions(sites: Sites) -> AsyncIterator[str]:
    """What the journal says to be installed is what ``fleet decide`` wants: by the documents that
    the hub exports there is nothing to do."""
    statuses = await sites.hub.statuses(ENVIRONMENTS)
    path = await _exported(sites, statuses)
    said = await sites.hub.command("fleet", "decide", str(path), "--json")
    if said.code != 0:
        yield str(said)
        return
    result = DecideResult.model_validate(json.loads(said.out))
    wanted = Story.end()
    for one in (decision for found in result.environments for decision in found.decisions):
        landed = (one.installed, one.code)
        if one.outcome not in (Outcome.NO_WORK, Outcome.BLOCKED) or landed != wanted[one.entity]:
            yield f"{one.entity} is to be {wanted[one.entity]}, and is decided {one}"
    for product in result.products:
        if product.acts:
            yield f"{product.product} is decided {product}"
    found = {one.entity for answer in result.environments for one in answer.decisions}
    if found != wanted.keys():
        yield f"{found} are decided"


async def _exported(sites: Sites, statuses: dict[str, EnvironmentStatus]) -> Path:
    """The documents of the hub, with states that say what the journal says."""
    exported = await sites.hub.command("fleet", "export")
    assert exported.code == 0, exported
    installed = sites.journal.installed()
    documents = list(yaml.safe_load_all(exported.out))
    for name, status in statuses.items():
        entities = {
            entity.partition("/")[2]: {"version": version}
            for entity, version in installed.items()
            if entity.startswith(f"{name}/")
        }
        documents.append({"kind": "state", "environment": name, "entities": entities})
        stops = [in_file_form(one) for one in status.suppressions]
        opened = [in_file_form(one) for one in status.overrides]
        documents.append(
            {
                "kind": "suppressions",
                "environment": name,
                "suppressions": stops,
                "overrides": opened,
            }
        )
    path = sites.hub.directory / "exported.yml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


# --- histories ---


async def _histories(sites: Sites) -> AsyncIterator[str]:
    """They replay, and decisions are made again as they were recorded."""
    recorded = Recorded()
    for name in ENVIRONMENTS:
        await recorded.read(await sites.hub.bare_client(), name)
    for fault in recorded.faults:
        yield fault
    if not recorded.snapshots:
        yield "no decision was recorded"
    for name, place in sites.all.items():
        for fault in await _replayed(place):
            yield f"{name}: {fault}"


async def _replayed(place: Place) -> list[str]:
    query = "WorkflowType IN ('Environment', 'Product', 'Spoke')"  # these go on
    try:
        await assert_all_replays(place.server.address, query, plugin=place.plugin())
    except AssertionError as error:
        return [str(error)]
    return []
