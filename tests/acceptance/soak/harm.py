"""What is done to the processes of a soak test's cluster: ``kill -9`` of tasks, their supervisors,
agents, the worker and the Temporal server, supervisors while their agent is away; ``SIGSTOP`` of
agents, the worker and the server; networks that stall, delay, reset, refuse and forget
connections; clocks that jump by an hour; machines that are lost for good."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from acceptance import real_tasks
from acceptance.cluster import Cluster, Machine
from acceptance.programs import Program
from acceptance.soak.ledger import Ledger
from temporal_plans.activities.agent.host.layout import WorkDir
from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.client.temporal.connection import ServerUnreachableError

GIVE_UP = 6.0
"""Seconds after which the pool gives an agent up that is unreachable."""

POOL = (
    f'{{"heartbeat": "2s", "give-up": "{GIVE_UP:g}s", "check-owners-every": "6s", "grace": "2s"}}'
)

SETTLE = 3.0
"""Seconds that a process has, after its start, to be up."""

AGENTS_AWAY = 2
"""Agents that are away at a time at most, so that the services have somewhere to be."""

DISTURBANCES = ("stall", "cut", "delay", "half-open", "reset")
"""What a network does: nothing arrives for a while; connections are reset, and new ones refused;
all is late; connections are dead without a sign; connections are reset once."""

BETWEEN = {"server": 20.0, "worker": 10.0}
"""Seconds from one outage to the next at least: else nothing would happen but outages."""


class Harm:
    """Kills and starts again. Each victim is away for a while, and other things go on meanwhile."""

    def __init__(self, cluster: Cluster, ledger: Ledger, chance: Random) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._chance = chance
        self._work_dirs = {agent: cluster.work_dir(agent) for agent in cluster.agents}
        self._away: set[str] = set()
        self._killed: dict[str, float] = {}
        self._back: dict[str, float] = {}
        self._jobs: list[asyncio.Task[None]] = []
        self.kills: dict[str, int] = {}
        self.frozen: list[tuple[datetime, datetime]] = []
        """From when to when the worker was stopped."""

    # --- what the watch asks ---

    @property
    def work_dirs(self) -> Mapping[str, Path]:
        return self._work_dirs

    def may_act(self, agent: str) -> bool:
        now = time.monotonic()
        return all(
            name not in self._away and now - self._back.get(name, 0.0) > SETTLE
            for name in (agent, "worker", "server")
        )

    def last_away(self, agent: str) -> float:
        if agent in self._away:
            return time.monotonic()
        return self._back.get(agent, float("-inf"))

    # --- the run ---

    async def run(self) -> None:
        """Until it is cancelled; ``mend`` then."""
        weights = {"task": 6, "supervisor": 1, "agent": 3, "worker": 2, "server": 1, "stop": 2}
        weights |= {"both": 1}
        weights |= {"network": 4} if self._cluster.networks else {}
        weights |= {"clock": 2} if self._cluster.clocks else {}
        kinds = tuple(weights)
        while True:
            await asyncio.sleep(self._chance.uniform(0.5, 2.5))
            match self._chance.choices(kinds, tuple(weights.values()))[0]:
                case "network":
                    name = self._chance.choice(sorted({"worker", *self._cluster.agents}))
                    others = len(self._away & set(self._cluster.agents))
                    if name not in self._away and others < AGENTS_AWAY:
                        how = self._chance.choice(DISTURBANCES)
                        self._disturb(name, how, self._chance.uniform(0.5, GIVE_UP + 6))
                case "clock":
                    self._jump(self._chance.choice(sorted({"worker", *self._cluster.agents})))
                case "task":
                    self._kill_task()
                case "supervisor":
                    self._kill_supervisor()
                case "agent":
                    agent = self._chance.choice(sorted(self._cluster.agents))
                    away = self._chance.choice((0.0, 1.0, 3.0, GIVE_UP + 6))
                    if len(self._away & set(self._cluster.agents)) < AGENTS_AWAY:
                        self._outage(agent, away)
                case "stop":
                    name = self._chance.choice(sorted(self._cluster.members))
                    away = len(self._away & set(self._cluster.agents))
                    if name not in self._away and away < AGENTS_AWAY:
                        self._stop(name, self._chance.uniform(0.5, GIVE_UP + 4))
                case "both":
                    agent = self._chance.choice(sorted(self._cluster.agents))
                    if len(self._away & set(self._cluster.agents)) < AGENTS_AWAY:
                        self._outage(agent, self._chance.uniform(0.5, 4.0))
                        self._kill_supervisor(agent)
                case name:
                    since = time.monotonic() - self._killed.get(name, float("-inf"))
                    if since > BETWEEN[name]:
                        self._outage(name, self._chance.uniform(0, 2.5))

    async def mend(self) -> None:
        """Wait until everything that is away is back."""
        await asyncio.gather(*self._jobs)

    async def supervise(self) -> None:
        """Start again what ended by itself, as whatever runs services on a machine does: a worker
        or agent that finds no server at its start says so and ends. Until it is cancelled."""
        while True:
            await asyncio.sleep(0.5)
            for name, member in self._cluster.members.items():
                if isinstance(member, Program) and name not in self._away and not member.alive:
                    last = member.log.read_text(errors="replace").strip().splitlines()[-1:]
                    self._ledger.tell(f"{name} ended by itself: {' '.join(last)[:100]}")
                    self._away.add(name)  # until it runs, nobody else may kill or start it
                    await member.start()
                    self._back[name] = time.monotonic()
                    self._away.discard(name)

    def _outage(self, name: str, seconds: float) -> None:
        if name not in self._away:
            self._goes(name, f"is away for {seconds:.1f} s")
            self._jobs.append(asyncio.create_task(self._out(name, seconds)))

    async def _out(self, name: str, seconds: float) -> None:
        member = self._cluster.members[name]
        with suppress(ProcessLookupError):  # it has just ended by itself
            await member.kill()
        await asyncio.sleep(seconds)
        await member.start()
        self._is_back(name)

    def _stop(self, name: str, seconds: float) -> None:
        """Stop a process for a while, as a paused machine or one out of processor time does."""
        if (pid := self._cluster.members[name].pid) is not None:
            self._goes(name, f"for {seconds:.1f} s", what="stop")
            self._jobs.append(asyncio.create_task(self._stopped(name, pid, seconds)))

    async def _stopped(self, name: str, pid: int, seconds: float) -> None:
        began = datetime.now(UTC)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
            finally:
                os.kill(pid, signal.SIGCONT)
        if name == "worker":
            self.frozen.append((began, datetime.now(UTC)))
        self._is_back(name)

    def _disturb(self, name: str, how: str, seconds: float) -> None:
        """Have the network of a process misbehave for a while."""
        self._goes(name, f"for {seconds:.1f} s", what=f"{how} of the network of")
        self._jobs.append(asyncio.create_task(self._disturbed(name, how, seconds)))

    async def _disturbed(self, name: str, how: str, seconds: float) -> None:
        network = self._cluster.networks[name]
        try:
            match how:
                case "stall":
                    network.stall()
                case "cut":
                    network.cut()
                case "delay":
                    network.delay = self._chance.uniform(0.1, 2.0)
                case "half-open":
                    network.half_open()
                case _:
                    network.reset()
            await asyncio.sleep(seconds)
        finally:
            network.flow()
            if how == "half-open":
                network.reset()  # else the process may wait for it for another minute
        self._is_back(name)

    def _jump(self, name: str) -> None:
        """Set the clock of a process an hour ahead, an hour back, or right."""
        ahead = self._chance.choice((-3600, 0, 3600))
        self._ledger.tell(f"the clock of {name} is {ahead:+d} s ahead")
        self._count("clock")
        self._cluster.clocks[name].set(ahead)

    def _goes(self, name: str, text: str, *, what: str = "kill -9") -> None:
        kind = "agent" if name in self._cluster.agents else name
        self._count(
            kind if what == "kill -9" else f"{what.removesuffix(' of the network of')} {kind}"
        )
        self._ledger.tell(f"{what} {name}, {text}")
        self._away.add(name)
        self._killed[name] = time.monotonic()

    def _is_back(self, name: str) -> None:
        self._ledger.tell(f"{name} is back")
        self._back[name] = time.monotonic()
        self._away.discard(name)

    def _count(self, kind: str) -> None:
        self.kills[kind] = self.kills.get(kind, 0) + 1

    # --- tasks ---

    def _kill_task(self) -> None:
        running = self._cluster.running()
        if not running:
            return
        task = self._chance.choice(sorted(running, key=real_tasks.name_of))
        self._ledger.tell(f"kill -9 of task {task}")
        self._count("task")
        with suppress(KeyError):  # it has just ended by itself
            real_tasks.kill(task, self._cluster.work_dirs)

    def _kill_supervisor(self, agent: str = "") -> None:
        """Kill the supervisor of a task, on that agent or on any."""
        paths = [self._cluster.work_dir(agent)] if agent else self._cluster.work_dirs
        living = {
            directory.path.name: pid
            for path in paths
            if (path / "tasks").is_dir()
            for directory in WorkDir(path).tasks()
            if (pid := directory.supervisor())
        }
        if not living:
            return
        task = self._chance.choice(sorted(living, key=real_tasks.name_of))
        self._ledger.tell(f"kill -9 of the supervisor of {task}")
        self._count("supervisor")
        with suppress(ProcessLookupError):
            os.kill(living[task], signal.SIGKILL)

    # --- machines ---

    async def lose_machine(self, fresh: Machine) -> None:
        """A machine is gone with all that ran on it, and another takes its place."""
        agent = await self._one_that_is_here()
        self._goes(agent, "for good, with its machine")
        with suppress(ProcessLookupError):
            await self._cluster.agents[agent].kill()
        await real_tasks.end_all([self._cluster.work_dir(agent)])
        await self._removed(agent)
        del self._cluster.agents[agent], self._cluster.machines[agent]
        self._work_dirs[fresh.id] = self._cluster.work_dir(fresh.id)
        self._away.add(fresh.id)
        await self._cluster.add(fresh, registered=False)  # there may be no server just now
        self._is_back(fresh.id)

    async def remove_too_early(self) -> None:
        """An operator removes an agent whose machine is well: its process is started again, with
        tasks that it no longer has any business with."""
        agent = await self._one_that_is_here()
        self._goes(agent, "to be removed")
        with suppress(ProcessLookupError):
            await self._cluster.agents[agent].kill()
        await self._removed(agent)
        await self._cluster.agents[agent].start()
        self._is_back(agent)

    async def _one_that_is_here(self) -> str:
        while True:
            here = sorted(set(self._cluster.agents) - self._away)
            if len(here) > len(self._cluster.agents) - AGENTS_AWAY:
                return self._chance.choice(here)
            await asyncio.sleep(0.2)

    async def _removed(self, agent: str) -> None:
        """Told to the pool until it has heard it."""
        while True:
            try:
                client = await self._cluster.client()
                await client.remove_agent(agent, force=True)
            except Refused as refused:  # an earlier try was carried out after all
                self._ledger.tell(f"agent {agent} is not removed again: {refused}")
                return
            except (PlansError, ServerUnreachableError):
                await asyncio.sleep(0.3)
            else:
                self._ledger.tell(f"agent {agent} is removed from the pool")
                return
