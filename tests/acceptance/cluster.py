"""A whole installation of real processes: a Temporal server, a worker, agents, and their tasks.

Commands are given as people give them, by ``temporal-plan`` and by plain ``temporal`` in processes
of their own; what became of them is looked up through ``PlansClient``, which costs less.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from acceptance import real_tasks
from acceptance.clock import Clock
from acceptance.programs import ForkedProgram, Member, Program, Said, Server, run, run_forked
from acceptance.proxy import Proxy
from pauses import PATIENCE, Pauses
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import Connection, ServerUnreachableError, connect
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.commands import Command, Outcome, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView
from temporal_plans.messages.pools import PoolStatus, ReleaseRequest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Machine:
    """What an agent says that it has."""

    id: str
    hostname: str
    cpus: float = 16
    memory: int = 32_000
    disk: int = 64_000


THREE = tuple(Machine(name, f"{name}.example") for name in ("one", "two", "three"))

POOL = '{"check-owners-every": "20s", "grace": "1s"}'
"""So that what terminated workflows held is free soon, and not in a minute. To ask their owners
every second takes a twentieth of a processor."""


class Cluster:
    """Processes by name: ``server``, ``worker``, and the agents by their ids."""

    def __init__(
        self,
        directory: Path,
        machines: Sequence[Machine],
        *,
        networks: bool = False,
        clocks: bool = False,
    ) -> None:
        """With ``networks`` the worker and each agent reach the server through a network of their
        own, with ``clocks`` they have a clock of their own; see ``can_jump``."""
        self.directory = directory
        self.networks: dict[str, Proxy] = {}
        self.clocks: dict[str, Clock] = {}
        self._has_networks = networks
        self._has_clocks = clocks
        self.env = self._environment({})
        self.database = directory / "temporal.db"
        self.server = Server(self.database, directory / "server.log")
        self.env = self._environment({"TEMPORAL_ADDRESS": self.server.address})
        self.worker = self._program("worker", "worker")
        self.agents: dict[str, Program] = {}
        self.machines: dict[str, Machine] = {}
        for machine in machines:
            self._add(machine)
        self._client: Client | None = None

    # --- processes --------------------------------------------------------------------------------

    @property
    def members(self) -> dict[str, Member]:
        return {"server": self.server, "worker": self.worker, **self.agents}

    @property
    def work_dirs(self) -> list[Path]:
        return [self.work_dir(agent) for agent in self.agents]

    def work_dir(self, agent: str) -> Path:
        return self.directory / "agents" / agent

    async def start(self, *, pool: str = POOL) -> None:
        """Start all, and wait until the agents have registered."""
        await self.server.start()
        for network in self.networks.values():
            await network.__aenter__()
        await self.worker.start()
        await self.temporal(
            *("workflow", "start", "--type", "Pool", "--task-queue", "plans"),
            *("--workflow-id", "pool/default", "--input", pool),
        )
        await asyncio.gather(*(agent.start() for agent in self.agents.values()))
        for agent in self.agents:
            await self.until_alive(agent)

    async def add(self, machine: Machine, *, registered: bool = True) -> None:
        """Start one more agent, and wait until it has registered."""
        self._add(machine)
        if machine.id in self.networks:
            await self.networks[machine.id].__aenter__()
        await self.agents[machine.id].start()
        if registered:
            await self.until_alive(machine.id)

    async def remove(self, agent: str) -> None:
        """Stop an agent for good."""
        await self.agents[agent].stop()
        await real_tasks.end_all([self.work_dir(agent)])
        await self.temporal(
            *("workflow", "update", "execute", "--workflow-id", "pool/default"),
            *("--name", "deregister", "--input", f'{{"agent": "{agent}", "force": true}}'),
        )
        del self.agents[agent], self.machines[agent]

    async def stop(self) -> None:
        """Stop all, tasks included."""
        await asyncio.gather(*(agent.stop() for agent in self.agents.values()))
        await real_tasks.end_all(self.work_dirs)
        await self.worker.stop()
        for network in self.networks.values():
            await network.__aexit__()
        await self.server.stop()

    def logs(self, lines: int = 40) -> Mapping[str, str]:
        """The end of what each process printed."""
        return {
            name: "\n".join(member.log.read_text(errors="replace").splitlines()[-lines:])
            for name, member in self.members.items()
            if member.log.exists()
        }

    # --- commands ---------------------------------------------------------------------------------

    async def plan(self, *arguments: str, code: int | None = 0, limit: float = PATIENCE) -> Said:
        """Run ``temporal-plan``; ``code`` is the exit code that it must have, None for any."""
        return await self._run("temporal-plan", arguments, code, limit)

    async def temporal(
        self, *arguments: str, code: int | None = 0, limit: float = PATIENCE
    ) -> Said:
        """Run plain ``temporal``."""
        return await self._run("temporal", arguments, code, limit)

    async def command(
        self, plan: str, verb: Verb, phase: str = "", step: str = "", **parameters: str
    ) -> Outcome:
        """A command to a plan, in this process; one that is refused raises."""
        command = Command(phase=phase, step=step, parameters=parameters, by="test")
        return await (await self.client()).command(plan, verb, command)

    async def _run(
        self, name: str, arguments: Sequence[str], code: int | None, limit: float
    ) -> Said:
        start = run_forked if name == "temporal-plan" else run
        program = PROGRAMS / name
        said = await start(program, *arguments, env=self.env, cwd=self.directory, limit=limit)
        assert code is None or said.code == code, f"not the exit code {code}:\n{said}"
        return said

    # --- what is the case -------------------------------------------------------------------------

    async def client(self) -> PlansClient:
        return PlansClient(await self.bare_client())

    async def bare_client(self) -> Client:
        """For what ``PlansClient`` has no verb for."""
        if self._client is None:
            connection = Connection(address=self.server.address, namespace="default")
            self._client = await connect(connection, environ={})
        return self._client

    async def view(self, plan: str) -> PlanView:
        """The tree of a plan, ended or not."""
        return (await (await self.client()).show(plan)).view

    async def pool(self) -> PoolStatus:
        return await (await self.client()).pool()

    def running(self) -> dict[str, set[int]]:
        """The ids of the tasks that run, with their processes."""
        return real_tasks.running(self.work_dirs)

    def running_names(self) -> list[str]:
        """Their names; a name that is in it twice runs twice."""
        return sorted(map(real_tasks.name_of, self.running()))

    # --- waiting ----------------------------------------------------------------------------------

    async def until(
        self,
        what: str,
        look: Callable[[], Awaitable[Answer]],
        holds: Callable[[Answer], object],
        *,
        within: float = PATIENCE,
    ) -> Answer:
        """Look until it holds; what was seen then. Nobody answering counts as not holding yet."""
        deadline, pauses = time.monotonic() + within, Pauses()
        seen: object = "nothing"
        while time.monotonic() < deadline:
            try:
                answer = await look()
            except (PlansError, ServerUnreachableError, RPCError) as error:
                seen = error
            else:
                if holds(answer):
                    return answer
                seen = answer
            await pauses.pause()
        raise AssertionError(f"{what}: not so after {within:g} s. Last seen:\n{_readable(seen)}")

    async def until_plan(
        self, plan: str, what: str, holds: Callable[[PlanView], object], *, within: float = PATIENCE
    ) -> PlanView:
        return await self.until(f"{plan} {what}", lambda: self.view(plan), holds, within=within)

    async def until_status(
        self, plan: str, status: Status, *, within: float = PATIENCE
    ) -> PlanView:
        return await self.until_plan(
            plan, f"is {status}", lambda view: view.status is status, within=within
        )

    async def until_said(self, *arguments: str, texts: Sequence[str]) -> Said:
        """Until ``temporal-plan`` succeeds and prints all these texts."""
        return await self.until(
            f"{' '.join(arguments)} says {', '.join(texts)}",
            lambda: self.plan(*arguments, code=None),
            lambda said: said.code == 0 and all(text in said.out for text in texts),
        )

    async def until_alive(self, agent: str) -> None:
        def alive(pool: PoolStatus) -> bool:
            return any(a.info.id == agent and a.state is AgentState.ALIVE for a in pool.agents)

        await self.until(f"agent {agent} is registered", self.pool, alive)

    async def until_running(self, names: Sequence[str], *, within: float = PATIENCE) -> None:
        """Until exactly these tasks have processes."""

        async def look() -> list[str]:
            return self.running_names()

        await self.until("the tasks run", look, lambda now: now == sorted(names), within=within)

    async def stays(
        self, plan: str, what: str, holds: Callable[[PlanView], object], *, looks: int = 10
    ) -> PlanView:
        """For what must not happen: holds at every one of some looks, in a good half second."""
        view = await self.view(plan)
        for _ in range(looks):
            assert holds(view), f"{plan} {what}: no longer so:\n{_readable(view)}"
            await asyncio.sleep(0.05)
            view = await self.view(plan)
        return view

    # --- services ---------------------------------------------------------------------------------

    async def tear_down(self, service: str) -> None:
        """End a service as an operator would who has nothing but plain Temporal: terminate its
        workflows, and give up what it holds. The agents end its tasks."""
        await self.terminate(service)
        pool = (await self.bare_client()).get_workflow_handle("pool/default")

        async def given_up() -> list[str]:
            held = await self.pool()
            keys = [one.key for one in held.reservations if one.owner == f"service/{service}"]
            releases = (pool.execute_update("release", ReleaseRequest(key=key)) for key in keys)
            await asyncio.gather(*releases)
            return keys

        await self.until(f"{service} holds nothing", given_up, lambda keys: not keys)

        async def alive() -> list[str]:
            prefix = f"{service.replace('/', '.')}__"
            return [task for task in self.running() if task.startswith(prefix)]

        await self.until(f"no task of {service} runs", alive, lambda tasks: not tasks)

    async def terminate(self, service: str) -> None:
        """End a service and its plans at once, and nothing else."""
        mine = f"WorkflowId STARTS_WITH '{service}/' OR WorkflowId = 'service/{service}'"
        query = f"({mine}) AND ExecutionStatus = 'Running'"
        client = await self.bare_client()

        async def left() -> list[str]:
            running = [run.id async for run in client.list_workflows(query)]
            for workflow in running:
                with suppress(RPCError):  # it has just ended
                    await client.get_workflow_handle(workflow).terminate("the test is over")
            return running

        await self.until(f"no workflow of {service} runs", left, lambda running: not running)

    # --- making -----------------------------------------------------------------------------------

    def _add(self, machine: Machine) -> None:
        self.machines[machine.id] = machine
        self.agents[machine.id] = self._program(
            f"agent-{machine.id}",
            "agent",
            *("--id", machine.id, "--hostname", machine.hostname),
            *("--cpus", str(machine.cpus), "--memory", str(machine.memory)),
            *("--disk", str(machine.disk), "--work-dir", str(self.work_dir(machine.id))),
        )

    def _program(self, name: str, *arguments: str) -> Program:
        # A clock needs a process that begins anew. So do workers: with another seed for the hashes
        # of strings, a restarted one shows what the order of a set decides.
        forked = arguments[0] == "agent" and not self._has_clocks
        return (ForkedProgram if forked else Program)(
            PROGRAMS / "temporal-plan",
            arguments,
            env={**self.env, **self._surroundings(name.removeprefix("agent-"))},
            log=self.directory / f"{name}.log",
        )

    def _surroundings(self, name: str) -> Mapping[str, str]:
        """The variables of a process with a network or a clock of its own."""
        env: dict[str, str] = {}
        if self._has_networks:
            self.networks[name] = Proxy(self.server.port)
            env["TEMPORAL_ADDRESS"] = self.networks[name].address
        if self._has_clocks:
            self.clocks[name] = Clock(self.directory / f"{name}.clock")
            env.update(self.clocks[name].env)
        return env

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Ours without what would point elsewhere, and with the commands of this environment."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TEMPORAL") and name != "COLUMNS"
        }
        return {
            **kept,
            "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.directory),  # no profile of the temporal CLI
            "NO_COLOR": "1",
            **more,
        }


@asynccontextmanager
async def running_cluster(
    machines: Sequence[Machine] = THREE,
    *,
    pool: str = POOL,
    networks: bool = False,
    clocks: bool = False,
) -> AsyncGenerator[Cluster]:
    """A cluster that is gone afterwards, files included.

    Not below pytest's own temporary directory: tasks of other users could not enter that.
    """
    directory = Path(tempfile.mkdtemp(prefix="temporal-plans-"))
    directory.chmod(0o755)
    cluster = Cluster(directory, machines, networks=networks, clocks=clocks)
    try:
        await cluster.start(pool=pool)
        yield cluster
    finally:
        await cluster.stop()
        shutil.rmtree(directory)


def phase(view: PlanView, name: str) -> PhaseView:
    return next(one for one in view.phases if one.name == name)


def steps(view: PlanView) -> dict[str, StepView]:
    """All steps by name; the names must differ, as a service's do within one plan."""
    found = {step.name: step for phase in view.phases for step in phase.steps}
    assert len(found) == sum(len(phase.steps) for phase in view.phases)
    return found


def statuses(view: PhaseView) -> str:
    """``C,W,P,P``: the statuses of a phase's steps by the letters of behaviour 1.6."""
    letters = {
        Status.COMPLETE: "C",
        Status.PENDING: "P",
        Status.WAITING: "W",
        Status.PREPARED: "PR",
        Status.STARTING: "SG",
        Status.STARTED: "SD",
        Status.IN_PROGRESS: "IP",
        Status.DELAYED: "D",
        Status.ERROR: "E",
    }
    return ",".join(letters[step.status] for step in view.steps)


def _readable(seen: object) -> str:
    if isinstance(seen, PlanView):
        lines = [f"{seen.id} {seen.status} {'; '.join(seen.errors)}"]
        for phase in seen.phases:
            lines.append(f"  {phase.name} {phase.status}")
            lines += [f"    {s.name} {s.status} {s.message}" for s in phase.steps]
        return "\n".join(lines)
    return repr(seen)
