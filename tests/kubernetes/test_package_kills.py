"""``kill -9`` of the worker, the Temporal server and the API server during an installation and
a change: everything is done once, by the run whose turn it is."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from aiohttp import ClientError
from kubernetes_asyncio.client.exceptions import ApiException

from acceptance.histories import assert_all_replays
from kubernetes.cluster_client import ClusterClient, Object
from kubernetes.installed import PLAN_TIMEOUT, Installed
from kubernetes.namespaces import Namespace
from kubernetes.place import Place
from kubernetes.plan_runs import assert_applied_by, assert_one_at_a_time, runs_of
from kubernetes.test_package_lives import CORPUS, STORE
from pauses import until
from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL, RUN_KEY
from temporal_plans.domain.packages.pipes.artefact import STEP_RUN

VICTIMS = ("worker", "temporal", "kube-apiserver")
_KINDS = (
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "Pod"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "Deployment"),
    ("rbac.authorization.k8s.io/v1", "Role"),
)
"""What packages apply, as far as it is looked at."""


@dataclass(frozen=True)
class Case:
    """A package with the files of its Pipe task, a change and its plan, and how many objects are
    applied by the installation and by the change."""

    folder: Path
    files: tuple[str, ...]
    change: Mapping[str, str]
    plan: str
    installed: int
    changed: int


OURS = Case(STORE, ("/generated/password",), {"EVICTION": "allkeys-lru"}, "update", 5, 2)
LARGEST = Case(
    CORPUS / "kafka",
    ("/tmp/tls.key", "/tmp/tls.crt"),
    {"BROKER_MEM": "1024Mi"},
    "update-instance",
    12,
    10,
)
CASE = LARGEST if CORPUS.is_dir() else OURS


class Watched:
    """What an instance has in its namespace, and what its artefacts had from moment to moment."""

    def __init__(self, cluster: ClusterClient, namespace: str, instance: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._labels = f"{INSTANCE_LABEL}={instance}"
        self.artefacts: dict[tuple[str, str], set[str]] = defaultdict(set)
        """The contents that there were, by name and run of the step."""

    async def objects(self) -> list[Object]:
        """Return the objects that runs of plans have applied; remember their artefacts."""
        found: list[Object] = []
        for version, kind in _KINDS:
            for one in await self._cluster.list(version, kind, self._namespace, self._labels):
                metadata = one["metadata"]
                if RUN_KEY in metadata.get("annotations", {}):
                    found.append({**one, "kind": kind})
        for one in found:
            token = one["metadata"]["annotations"].get(STEP_RUN)
            if token is not None and one["kind"] != "Pod":
                content = str(one.get("data") or one.get("binaryData"))
                self.artefacts[one["metadata"]["name"], token].add(content)
        return found

    async def until_applied(self, number: int, before: set[str]) -> None:
        """Wait until runs that are not ``before`` have applied some objects."""

        async def applied() -> int:
            with suppress(ApiException, ClientError, OSError):
                return sum(_run(one) not in before for one in await self.objects())
            return 0

        await until(applied, lambda found: found >= number, patience=PLAN_TIMEOUT)


def _run(live: Object) -> str:
    uid: str = live["metadata"]["annotations"][RUN_KEY]
    return uid


@asynccontextmanager
async def changing_files(place: Place, files: tuple[str, ...]) -> AsyncGenerator[None, None]:
    """What pods make is another thing every time that it is read."""

    async def change() -> None:
        for number in count():
            place.make_files(files, f"content {number:010}")
            await asyncio.sleep(0.02)

    place.make_files(files, "content at first")
    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()
        with suppress(asyncio.CancelledError):
            await changing


async def kill(place: Place, victim: str, seconds: float) -> None:
    """Kill a process, and start it again after some time."""
    if victim == "kube-apiserver":
        await place.plane.server.kill()
        await asyncio.sleep(seconds)
        await place.plane.start_server()
    else:
        member = place.members[victim]
        await member.kill()
        await asyncio.sleep(seconds)
        await member.start()


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_everything_is_done_once(
    place: Place, cluster: ClusterClient, victim: str, request: pytest.FixtureRequest
) -> None:
    """The moments are those of the seeds ``VICTIM 0``, ``VICTIM 1`` and so on."""
    kills = int(request.config.getoption("--kills") or 0)
    for number in range((kills + 1) // 2):
        seed = f"{victim} {number}"
        namespace = await Namespace.made(cluster)
        try:
            await _installed_and_changed(place, cluster, namespace, victim, random.Random(seed))
        except AssertionError as error:
            error.add_note(f"the seed was {seed!r}")
            raise
        finally:
            await namespace.delete()
    await assert_all_replays(place.server.address)


async def _installed_and_changed(
    place: Place, cluster: ClusterClient, namespace: Namespace, victim: str, chance: random.Random
) -> None:
    """One kill during the installation, and one during the change."""
    installed = Installed(place, f"kill-{namespace.name}", namespace.name)
    watched = Watched(cluster, namespace.name, installed.name)
    async with changing_files(place, CASE.files):
        answer = await installed.deploy(CASE.folder)
        await watched.until_applied(chance.randint(0, CASE.installed), set())
        await kill(place, victim, chance.uniform(0, 1))
        await installed.until_complete("deploy", config=answer.number)
        before = {*map(_run, await watched.objects())}

        answer = await installed.deploy(parameters=CASE.change)
        await watched.until_applied(chance.randint(0, CASE.changed), before)
        await kill(place, victim, chance.uniform(0, 1))
        await installed.until_complete(CASE.plan, config=answer.number)

    objects = await watched.objects()
    runs = await runs_of(place, installed.name, ("deploy", CASE.plan))
    assert [run.plan for run in runs] == ["deploy", CASE.plan], "a plan began twice"
    assert_one_at_a_time(runs)
    assert_applied_by(runs, objects)
    assert watched.artefacts, "nothing was looked at"
    for (name, token), contents in watched.artefacts.items():
        assert len(contents) == 1, f"{name} was made {len(contents)} times for the run {token}"
    assert len(watched.artefacts) == len(CASE.files), "each was made for one run, and is kept"
    kept = {one["metadata"]["name"] for one in objects}
    assert {name for name, _ in watched.artefacts} <= kept, "an artefact was lost"
    await installed.uninstall(volumes=True)
    assert await cluster.list("v1", "PersistentVolumeClaim", namespace.name) == []
