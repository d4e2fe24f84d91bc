"""The life of a package: installed, changed, upgraded, rolled back and uninstalled, with everything
in the cluster counted before and after."""

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kubernetes.cluster_client import Object
from kubernetes.installed import Installed, readable
from kubernetes.listing import Identity
from kubernetes.place import Place
from pauses import until
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.packages.package import OPERATOR_FILE
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.packages.nested import load_tree

CLAIM = "PersistentVolumeClaim"


@dataclass(frozen=True)
class Life:
    """What happens to a package. ``changes`` is one change for each plan that a change of
    parameters starts, by that plan; ``guarding`` are those that only keep a change from
    objects that can't have it, so that it is taken back; ``endless`` are those that run until they
    are stopped; ``starts`` are plans that people start; ``files`` is what its Pipe tasks read;
    ``claims`` are the claims that stay, with ``{name}``."""

    folder: Path
    changes: Mapping[str, Mapping[str, str]]
    upgrade: str = "deploy"
    guarding: frozenset[str] = frozenset()
    endless: frozenset[str] = frozenset()
    starts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


def triggers(folder: Path) -> set[str]:
    """Return all plans that a change of parameters of a package starts."""
    package = load_tree(folder).root.package
    names = package.operator.plans
    default = "update" if "update" in names else "deploy"
    return {parameter.trigger or default for parameter in package.parameters}


def newer(folder: Path, target: Path) -> Path:
    """Return a copy of a package with a higher version."""
    shutil.copytree(folder, target)
    operator = target / OPERATOR_FILE
    text, count = re.subn(
        r"(?m)^operatorVersion:.*$", 'operatorVersion: "99.0.0"', operator.read_text()
    )
    assert count == 1
    operator.write_text(text)
    return target


async def live(place: Place, installed: Installed, life: Life, folder: Path) -> None:
    """Lead the life of a package. ``folder`` is for copies."""
    assert set(life.changes) == triggers(life.folder), "a trigger is not tried"
    place.make_files(life.files, "made once")
    before = await place.everything()

    assert await installed.deployed(life.folder) == "deploy"
    await installed.until_ready()
    for plan, change in life.changes.items():
        await _change(installed, life, plan, change)
        if plan in life.guarding:
            await _change(installed, life, plan, dict.fromkeys(change))
    for plan in life.starts:
        await installed.start(plan)
    config = (await (await place.client()).instance(installed.name)).config_id
    assert await installed.deployed(newer(life.folder, folder / "newer")) == life.upgrade
    await installed.roll_back(config)

    client = await place.client()
    nested = await _nested(client, installed)
    assert len(nested) == len(load_tree(life.folder).packages) - 1, nested
    ended = await installed.uninstall()
    assert await _nested(client, installed) == [], "services of nested packages are left"
    left = await _left(place, before)
    kept = {each for each in left if each.kind == CLAIM}
    wanted = {name.format(name=installed.name) for name in life.claims}
    assert {each.name for each in kept} == wanted, readable(ended)
    said = await client.what_stays(f"{installed.name}/{CLEANUP}")
    assert {each.name for each in kept if f"{CLAIM} {each.name}" in said} == wanted, said
    assert bool(said) == bool(wanted), said
    remains = [why_it_is_there(left[each]) for each in set(left) - kept]
    assert not remains, f"{remains} are left by:\n{readable(ended)}"


async def _nested(client: PlansClient, installed: Installed) -> list[str]:
    """Return the services of nested packages."""
    return [one for one in await client.services() if one.startswith(f"{installed.name}-")]


async def _change(
    installed: Installed, life: Life, plan: str, change: Mapping[str, str | None]
) -> None:
    """A change of parameters, to its end; where its plan has none, until that is stopped."""
    if plan not in life.endless:
        assert await installed.deployed(parameters=change) == plan
        return
    answer = await installed.deploy(parameters=change)
    assert answer.plan.rpartition("/")[2] == plan
    await installed.until_status(plan, Status.STARTED, config=answer.number)
    await installed.order(plan, Verb.STOP)
    client = await installed.place.client()

    async def rests() -> bool:  # when its step has stopped what it did in the cluster
        plans = (await client.instance(installed.name)).plans
        return any(one.name == plan and one.resting and one.stopped for one in plans)

    await until(rests)


async def _left(place: Place, before: Mapping[Identity, Object]) -> Mapping[Identity, Object]:
    """Return what was not there before, when all has gone that goes."""

    async def look() -> Mapping[Identity, Object]:
        found = await place.everything()
        return {each: one for each, one in found.items() if each not in before}

    def settled(found: Mapping[Identity, Object]) -> bool:
        return all(each.kind == CLAIM for each in found)

    with suppress(AssertionError):  # the caller names what is left
        await until(look, settled, patience=30)
    return await look()


def why_it_is_there(live: Object) -> str:
    """An object with what keeps it, for the text of a failure."""
    metadata = live["metadata"]
    kept = ("deletionTimestamp", "finalizers", "ownerReferences", "creationTimestamp")
    return f"{live.get('kind')} {metadata['name']} { {key: metadata.get(key) for key in kept} }"
