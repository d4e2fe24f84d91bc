"""``kill -9`` in the middle of a deploy: of the worker, of the Temporal server, of agents.

Each kind of process is killed and started again ``--kills`` times, in turn, at moments of a deploy
that ``--kills-seed`` chooses; three pods are deployed a kill, and commands are given before and
during every outage.

The tasks watch over themselves: each locks a file of its name for as long as it lives, which only
one process can, and says so when it can't.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import cast

import pytest

from acceptance import real_tasks
from acceptance.cluster import Cluster, running_cluster, steps
from acceptance.histories import assert_all_replays
from temporal_plans.domain.plans.status import Status

SERVICE = "nodes"
PLAN = f"{SERVICE}/deploy"
VICTIMS = ("worker", "server", "agent")
PODS_OF_A_KILL = 3

SERVICE_FILE = """
name: nodes
pods:
  node:
    count: {{COUNT}}
    tasks:
      server:
        goal: RUNNING
        cmd: |
          exec 9>>"$EVIDENCE/$TASK_NAME.lock"
          flock --nonblock 9 || echo "$TASK_NAME" >> "$EVIDENCE/twice"
          echo "$TASK_NAME" >> "$EVIDENCE/starts"
          for minute in 1 2 3 4 5 6 7 8 9 10; do sleep 60 9>&-; done
        cpus: 0.1
        memory: 32
        env:
          EVIDENCE: {{EVIDENCE}}
        readiness-check:
          cmd: |
            rank=$(awk -v me="$TASK_NAME" '$1 == me {print NR; exit}' "$EVIDENCE/starts")
            test "$rank" -le "$(cat "$EVIDENCE/allowed")"
          interval: 1
          timeout: 5
plans:
  deploy:
    strategy: serial
    phases:
      nodes:
        strategy: {name: max-parallel, limit: 2}
        pod: node
"""

ALREADY = "Command has already been issued"


@dataclass
class Deploy:
    """The deploy under attack, and what must be found afterwards."""

    cluster: Cluster
    evidence: Path
    pods: int
    given: list[str] = field(default_factory=list[str])
    """the reasons of all commands that were taken"""
    began: float = field(default_factory=time.monotonic)

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.1f} s  {text}")

    def started(self) -> list[str]:
        """The names of the tasks that were started, in order."""
        file = self.evidence / "starts"
        return file.read_text().split() if file.exists() else []

    def allow(self, count: int) -> None:
        """Let so many tasks become ready, in the order in which they were started."""
        fresh = self.evidence / "allowed.new"
        fresh.write_text(str(count))
        fresh.rename(self.evidence / "allowed")

    async def until_started(self, count: int) -> None:
        async def look() -> int:
            return len(set(self.started()))

        await self.cluster.until(
            f"{count} tasks were started", look, lambda now: now >= count, within=120
        )

    # --- commands ---

    async def give(self, verb: str, reason: str) -> None:
        """A command by ``temporal-plan``, given until it is taken, as an operator would."""
        deadline = time.monotonic() + 90
        while True:
            said = await self.cluster.plan(
                *(verb, "deploy", "-s", SERVICE, "--reason", reason, "--by", "ann"), code=None
            )
            if said.code == 0 or ALREADY in said.err:
                self.given.append(reason)
                return
            assert time.monotonic() < deadline, f"never taken:\n{said}"

    async def signal(self, verb: str, reason: str) -> None:
        """A command that nobody answers; Temporal keeps it until there is a worker."""
        await self.cluster.temporal(
            *("workflow", "signal", "--workflow-id", PLAN, "--name", verb),
            *("--input", json.dumps({"reason": reason, "by": "bob"})),
        )
        self.given.append(reason)

    # --- harm ---

    async def kill(self, victim: str, number: int) -> None:
        """Kill it, give commands while it is away, and start it again."""
        interrupts = number % 2 == 0
        if interrupts:
            await self.give("interrupt", f"before kill {number}")
        member = self.cluster.members[victim]
        await member.kill()
        self.tell(f"kill {number}: {victim}, after {len(self.started())} starts")
        if victim == "worker":
            await self.signal("continue", f"signal in outage {number}")
        command = asyncio.create_task(self.give("continue", f"command in outage {number}"))
        await member.start()
        await command
        self.tell(f"        {victim} is back")


@pytest.fixture
async def deploy(request: pytest.FixtureRequest) -> AsyncIterator[Deploy]:
    kills = cast(int, request.config.getoption("--kills"))
    pods = PODS_OF_A_KILL * len(VICTIMS) * kills
    async with running_cluster(pool="{}") as cluster:
        evidence = cluster.directory / "evidence"
        evidence.mkdir()
        file = cluster.directory / "nodes.yml"
        file.write_text(SERVICE_FILE)
        await cluster.plan("deploy", str(file), "-e", f"EVIDENCE={evidence}", "-e", f"COUNT={pods}")
        deploy = Deploy(cluster, evidence, pods)
        deploy.allow(0)
        yield deploy


@pytest.mark.long
@pytest.mark.timeout(600)
async def test_nothing_is_lost_or_done_twice(
    deploy: Deploy, request: pytest.FixtureRequest
) -> None:
    chance = random.Random(cast(int, request.config.getoption("--kills-seed")))
    kinds = islice(cycle(VICTIMS), deploy.pods // PODS_OF_A_KILL)
    for number, kind in enumerate(kinds):
        before = number * PODS_OF_A_KILL
        # The plan hears all commands: it is not over before them.
        deploy.allow(min(before + PODS_OF_A_KILL, deploy.pods - 1))
        await deploy.until_started(before + chance.randint(1, PODS_OF_A_KILL))
        victim = chance.choice(sorted(deploy.cluster.agents)) if kind == "agent" else kind
        await deploy.kill(victim, number)
    deploy.allow(deploy.pods)
    await deploy.cluster.until_status(PLAN, Status.COMPLETE, within=180)
    deploy.tell("COMPLETE")
    await _check_launches(deploy)
    await _check_reservations(deploy)
    await _check_commands(deploy)
    await assert_all_replays(deploy.cluster.server.address)


async def _check_launches(deploy: Deploy) -> None:
    """Each task was started once for each time that its step meant to, and runs once."""
    cluster = deploy.cluster
    view = await cluster.view(PLAN)
    names = [f"node-{i}-server" for i in range(deploy.pods)]
    assert {step.status for step in steps(view).values()} == {Status.COMPLETE}

    launches = real_tasks.launches(cluster.work_dirs)
    assert set(launches.values()) == {1}, "a task id was started twice"
    intended = {
        f"node-{i}-server": steps(view)[f"node-{i}:[server]"].attempt for i in range(deploy.pods)
    }
    assert Counter(map(real_tasks.name_of, launches)) == intended
    assert Counter(deploy.started()) == intended
    assert intended == dict.fromkeys(names, 1), "no task was lost, so none was to be started again"

    assert not (deploy.evidence / "twice").exists(), "a task ran twice at the same time"
    await cluster.until_running(names)
    records = await (await cluster.client()).tasks(SERVICE)
    assert {record.task_id for record in records} == set(cluster.running())


async def _check_reservations(deploy: Deploy) -> None:
    """The pool holds what the service has, and nothing else."""
    cluster = deploy.cluster
    pods = await (await cluster.client()).pods(SERVICE)
    held = {pod.reservation.id for pod in pods if pod.reservation}
    assert len(held) == deploy.pods
    pool = await cluster.pool()
    assert {one.id for one in pool.reservations} == held
    assert not pool.waiting


async def _check_commands(deploy: Deploy) -> None:
    """All that was taken is in the log."""
    said = await deploy.cluster.plan("log", "deploy", "-s", SERVICE, "--json")
    logged = [entry["reason"] for entry in json.loads(said.out)["entries"]]
    assert set(logged) >= set(deploy.given)
