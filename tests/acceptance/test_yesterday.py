"""A Temporal server that is restored from yesterday's database, with agents that are a day ahead.

No agent may lose or double what it runs, and whoever restored the server must be told what it does
not know.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from acceptance import real_tasks
from acceptance.cluster import Cluster, Machine, running_cluster

POOL = '{"check-owners-every": "5s", "grace": "1s", "heartbeat": "3s", "give-up": "30s"}'
MACHINES = (Machine("one", "one.example"), Machine("two", "two.example"))

SERVICE = """
name: {name}
pods:
  web:
    count: {count}
    tasks:
      server:
        goal: RUNNING
        cmd: "while true; do sleep 1; done"
        cpus: 0.1
        memory: 32
        env: {{VERSION: "{version}"}}
"""


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with running_cluster(MACHINES, pool=POOL) as cluster:
        yield cluster


def _file(cluster: Cluster, name: str, count: int = 2, version: int = 1) -> Path:
    path = cluster.directory / f"{name}-{version}.yml"
    path.write_text(SERVICE.format(name=name, count=count, version=version))
    return path


async def _deploy(cluster: Cluster, name: str, count: int = 2, version: int = 1) -> None:
    await cluster.plan("deploy", str(_file(cluster, name, count, version)), "--wait", limit=90)


def _save(cluster: Cluster) -> Path:
    """Copy the database as it is; everything runs on."""
    kept = cluster.directory / "yesterday.db"
    with closing(sqlite3.connect(cluster.database)) as live, closing(sqlite3.connect(kept)) as copy:
        live.backup(copy)
    return kept


async def _restore(cluster: Cluster, kept: Path) -> None:
    await cluster.worker.stop()
    await cluster.server.kill()
    for suffix in ("", "-wal", "-shm"):
        cluster.database.with_name(cluster.database.name + suffix).unlink(missing_ok=True)
    shutil.copy(kept, cluster.database)
    await cluster.server.start()
    await cluster.worker.start()


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_what_the_server_has_forgotten_runs_on_and_is_listed(cluster: Cluster) -> None:
    """One agent is restarted as well, the other runs on."""
    await asyncio.gather(_deploy(cluster, "shop"), _deploy(cluster, "gone", count=1))
    kept = _save(cluster)
    await _deploy(cluster, "shop", count=3, version=2)
    await _deploy(cluster, "fresh", count=1)
    await cluster.plan("uninstall", "-s", "gone", "--yes", "--wait", limit=90)
    ahead = cluster.running()

    await _restore(cluster, kept)
    await cluster.agents["one"].kill()
    await cluster.agents["one"].start()
    await _until_explained(cluster, "shop", [task for task in ahead if "shop__" in task])

    expected = [f"to end it: temporal plan audit --end {task}\n" for task in ahead]
    expected.append("to launch it: temporal plan pod restart web-0 -s gone\n")
    expected.append("resources: temporal plan pod replace web-0 -s gone\n")
    audit = await _until_audited(cluster, expected)
    assert cluster.running().keys() == ahead.keys(), "something was ended or launched unasked"

    await _follow(cluster, audit)
    await cluster.plan("deploy", str(_file(cluster, "shop", 3, 2)), "--wait", limit=90)
    await cluster.until_running(["web-0-server"] * 2 + ["web-1-server", "web-2-server"])
    await _until_audited(cluster, ["Agents and services agree; 4 tasks run."])
    assert set(real_tasks.launches(cluster.work_dirs).values()) == {1}


async def _until_audited(cluster: Cluster, lines: list[str]) -> str:
    """The audit as soon as all services answer it: their worker has just begun again."""

    async def look() -> str:
        return (await cluster.plan("audit")).out

    return await cluster.until(
        "audit has all lines", look, lambda said: all(line in said for line in lines)
    )


async def _until_explained(cluster: Cluster, service: str, tasks: list[str]) -> None:
    async def look() -> str:
        return (await cluster.plan("explain", "-s", service, code=None)).both

    await cluster.until(
        "explain names the tasks that the service does not know",
        look,
        lambda said: all(f"audit --end {task}\n" in said for task in tasks),
        within=60,
    )


async def _follow(cluster: Cluster, audit: str) -> None:
    """Type what the audit says."""
    for line in audit.splitlines():
        purpose, _, command = line.strip().partition(": temporal plan ")
        if purpose in ("to end it", "if the agent has released its resources"):
            await cluster.plan(*command.split())
