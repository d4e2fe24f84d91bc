"""Where a fleet runs: a Temporal server on a database file and a worker, both of which may be
killed, and an outpost for each environment that has a spoke."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from acceptance.fleet_soak.ledger import Ledger
from acceptance.fleet_soak.outpost import Outpost
from acceptance.fleet_soak.processors import processor_seconds
from acceptance.fleet_soak.worker_program import PROGRAMS, WORKER, worker_program
from acceptance.fleet_worker import LEDGER, settings
from acceptance.programs import Member, Said, Server, run_forked
from pauses import PATIENCE, Pauses
from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import Connection, ServerUnreachableError, connect
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentInput
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.worker.plugin import PlansPlugin

ANSWER_WITHIN = 12.0
"""Seconds that an answer is waited for; after them the request may have been taken."""

SILENT = (PlansError, ServerUnreachableError, RPCError, TimeoutError)
"""What a request raises when a process that it needs is away."""

Answer = TypeVar("Answer")


class Place:
    """``members`` are the processes by name; ``outposts`` those places by their environments."""

    def __init__(self, directory: Path, spokes: Sequence[str] = ()) -> None:
        """``spokes`` are the environments that have one."""
        self.directory = directory
        self.ledger = Ledger(directory / "ledger.jsonl")
        self.server = Server(directory / "temporal.db", directory / "server.log")
        self.env = self._environment(self.server.address)
        self.worker = worker_program(self.env, directory / "worker.log")
        self.outposts = {
            name: Outpost(name, directory, self.server.port, self._environment) for name in spokes
        }
        self.members: dict[str, Member] = {"server": self.server, "worker": self.worker}
        for outpost in self.outposts.values():
            self.members.update(outpost.members)
        self._clients: dict[str, Client] = {}

    def _environment(self, address: str) -> dict[str, str]:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL")
        }
        tests = str(WORKER.parents[1])
        return {
            **kept,
            "HOME": str(self.directory),
            "NO_COLOR": "1",
            "PYTHONPATH": tests,
            "TEMPORAL_ADDRESS": address,
            LEDGER: str(self.ledger.path),
        }

    async def start(self) -> None:
        await self.server.start()
        await self.worker.start()
        await asyncio.gather(*(outpost.start() for outpost in self.outposts.values()))

    async def stop(self) -> None:
        await asyncio.gather(*(outpost.stop() for outpost in self.outposts.values()))
        await self.worker.stop()
        await self.server.stop()

    @property
    def addresses(self) -> list[str]:
        """Of all servers, that of the hub first."""
        return [self.server.address, *(one.server.address for one in self.outposts.values())]

    def plans_address(self, environment: str) -> str:
        """Of the server that has the plans of an environment."""
        outpost = self.outposts.get(environment)
        return (outpost or self).server.address

    def ended(self) -> list[str]:
        """The processes that are not there, and what spokes said that ended without a reason."""
        gone = [f"{name} is not there" for name, one in self.members.items() if one.pid is None]
        for name, outpost in self.outposts.items():
            gone += [f"the spoke of {name} ended: {line}" for line in outpost.spoke.unexplained]
        return gone

    def processor_seconds(self) -> float:
        """What this place has cost until now, and this process for it."""
        pids = [member.pid for member in self.members.values()]
        return processor_seconds(pid for pid in pids if pid is not None)

    def logs(self, lines: int = 40) -> Mapping[str, str]:
        """The end of what each process printed."""
        return {
            name: "\n".join(member.log.read_text(errors="replace").splitlines()[-lines:])
            for name, member in self.members.items()
            if member.log.exists()
        }

    # --- asking ---

    async def bare_client(self, address: str = "") -> Client:
        """Of the hub's server, or of another one."""
        address = address or self.server.address
        if address not in self._clients:
            connection = Connection(address=address, namespace="default")
            self._clients[address] = await connect(connection, environ={})
        return self._clients[address]

    async def client(self) -> PlansClient:
        return PlansClient(await self.bare_client())

    async def gateway(self, address: str = "") -> TemporalGateway:
        return TemporalGateway(await self.bare_client(address), task_queue="plans")

    def plugin(self) -> PlansPlugin:
        """That of the worker, for replays."""
        return PlansPlugin(settings=settings())

    async def command(self, *arguments: str) -> Said:
        """Run ``temporal-plan``."""
        program = PROGRAMS / "temporal-plan"
        return await run_forked(
            program, *arguments, env=self.env, cwd=self.directory, limit=PATIENCE
        )

    async def apply(self, request: EnvironmentApply, begin: EnvironmentInput) -> Outcome:
        """As ``PlansClient.apply_environment``, with an input of one's own."""
        name = environment_id(request.environment.name)
        gateway = await self.gateway()
        return await gateway.start_and_update(
            "Environment", name, begin, "apply", Outcome, request=request
        )

    async def statuses(self, names: Sequence[str]) -> dict[str, EnvironmentStatus]:
        """Raises one of SILENT when one does not answer."""
        client = await self.client()
        async with asyncio.timeout(ANSWER_WITHIN):
            return {name: await client.environment(name) for name in names}

    async def plan_rows(self, names: Sequence[str]) -> dict[str, PlanRow]:
        """All plans that the environments list, by plan id."""
        client = await self.client()
        answers = [await client.fleet_plans(name) for name in names]
        return {row.plan_id: row for answer in answers for row in answer.rows}

    # --- until it is so ---

    async def insist(
        self, what: str, ask: Callable[[], Awaitable[Answer]], *, within: float = 2 * PATIENCE
    ) -> Answer | None:
        """Ask until there is an answer, as people do when a process is away. None for what was
        refused after it had not been answered: it may have been taken then."""
        deadline, pauses, silent = time.monotonic() + within, Pauses(0.1, 1), ""
        while time.monotonic() < deadline:
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return await ask()
            except Refused as error:
                if silent:
                    return None
                silent = f"is refused: {error}"
                break
            except SILENT as error:
                silent = repr(error)
            await pauses.pause()
        raise AssertionError(f"{what}: {silent}")

    async def until(
        self,
        what: str,
        look: Callable[[], Awaitable[Answer]],
        holds: Callable[[Answer], object],
        *,
        within: float = PATIENCE,
    ) -> Answer:
        """Look until it holds; what was seen then."""
        deadline, pauses, seen = time.monotonic() + within, Pauses(), "nothing"
        while time.monotonic() < deadline:
            try:
                answer = await look()
            except SILENT as error:
                seen = repr(error)
            else:
                if holds(answer):
                    return answer
                seen = repr(answer)
            await pauses.pause()
        raise AssertionError(f"{what}: not so after {within:g} s. Last seen: {seen}")


@asynccontextmanager
async def running_place(spokes: Sequence[str] = ()) -> AsyncGenerator[Place]:
    """A place that is gone afterwards, files included. ``spokes`` are the environments that have
    one."""
    directory = Path(tempfile.mkdtemp(prefix="temporal-plans-"))
    place = Place(directory, spokes)
    try:
        await place.start()
        yield place
    finally:
        await place.stop()
        shutil.rmtree(directory)
