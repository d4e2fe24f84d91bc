"""The soak test itself: chaos for some time, then calm, then a look at what is left."""

import asyncio
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from acceptance import real_tasks
from acceptance.cluster import Cluster, Machine
from acceptance.histories import assert_all_replays
from acceptance.soak import services, verdict
from acceptance.soak.harm import Harm
from acceptance.soak.ledger import Answer, Ledger
from acceptance.soak.operators import Operated, Operators
from acceptance.soak.processes import ProcessWatch
from acceptance.soak.report import report
from temporal_plans.client.errors import PlansError
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.plan_views import PlanView

OPERATORS = 3

CONVERGES_WITHIN = 150.0
"""Seconds that everything has to become as it was last said to be. It takes a few; what takes long
is a machine that is busy with other tests."""

ENDS_WITHIN = 120.0
"""The same for what was begun in the chaos and is waited for: processes that start, a service that
is uninstalled and installed again."""

LOOKS = 3
"""Looks in a row that must find nothing wrong, so that what only passes by is not taken for it."""


class Soak:
    """One drill. ``seed`` decides what is done, though not when exactly it takes effect."""

    def __init__(self, cluster: Cluster, bare: Client, seed: int, kept: Path) -> None:
        """``kept`` is where the histories are left if something is wrong."""
        self.cluster = cluster
        self.seed = seed
        self.kept = kept
        self.ledger = Ledger()
        self.operators = Operators(cluster, bare, self.ledger)
        self.harm = Harm(cluster, self.ledger, Random(f"harm {seed}"))
        self.watch = ProcessWatch(self.harm)
        self._bare = bare

    @classmethod
    async def on(cls, cluster: Cluster, seed: int, kept: Path) -> "Soak":
        return cls(cluster, await cluster.bare_client(), seed, kept)

    async def run(self, seconds: float) -> None:
        """Raises AssertionError, with the timeline and the state, for all that is wrong."""
        self.ledger.tell(f"seed {self.seed}")
        beside = [asyncio.create_task(act) for act in (self.watch.run(), self.harm.supervise())]
        try:
            await self._installed()
            await self._chaos(seconds)
            await self._calm()
            faults = await self._converged()
        finally:
            for task in beside:
                task.cancel()
            ended = await asyncio.gather(*beside, return_exceptions=True)
        faults += [f"the drill itself: {one!r}" for one in ended if isinstance(one, Exception)]
        faults += self.watch.faults + self.operators.faults
        faults += await self._accounts()
        if faults:
            raise AssertionError(await report(self, faults))
        self.ledger.tell(self._summary())

    async def _installed(self) -> None:
        await asyncio.gather(
            *(self.operators.install(service) for service in self.operators.services.values())
        )

    # --- chaos ---

    async def _chaos(self, seconds: float) -> None:
        """Harm and operators at once; some things happen just once, somewhere in the middle."""
        chance = Random(f"chaos {self.seed}")
        acts = [
            self.harm.run(),
            *(self.operators.run(Random(f"operator {i} {self.seed}")) for i in range(OPERATORS)),
        ]
        once = [
            self._later(seconds * chance.uniform(0.2, 0.5), self._reinstall()),
            self._later(
                seconds * chance.uniform(0.15, 0.45),
                self.harm.lose_machine(Machine("five", "five.example")),
            ),
            self._later(seconds * chance.uniform(0.5, 0.8), self.harm.remove_too_early()),
        ]
        going = [asyncio.create_task(act) for act in acts]
        singles = [asyncio.create_task(act) for act in once]
        done, _ = await asyncio.wait(going, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        for task in done:
            await task  # an error of the drill itself
        self.ledger.tell("the chaos is over")
        await self._over("everything that was killed is back", self.harm.mend())
        lifting = asyncio.create_task(self._keep_lifting())  # also of what is uninstalled
        try:
            await self._over("what was begun once is over", asyncio.gather(*singles))
        finally:
            lifting.cancel()
            await asyncio.gather(lifting, return_exceptions=True)

    async def _over(self, what: str, act: Awaitable[Any]) -> None:
        """Wait for what has to come to an end by itself."""
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                await act
        except TimeoutError:
            raise AssertionError(await report(self, [f"not so: {what}"])) from None

    async def _later(self, seconds: float, act: Coroutine[Any, Any, None]) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            act.close()
            raise
        await act

    async def _reinstall(self) -> None:
        for service in self.operators.services.values():
            if service.kind.restless:
                await self.operators.reinstall(service)

    # --- calm ---

    async def _calm(self) -> None:
        """Say once more, to every service, what it is to be."""
        for service in self.operators.services.values():
            await self._insist(service)

    async def _insist(self, service: Operated) -> None:
        """The newest configuration again, whatever was and was not answered before. Where somebody
        forced something, or it crashes, a new one."""
        for _ in range(5):
            wanted = await self._newest(service)
            if service.forced or wanted.crashing:
                wanted = services.mended(wanted, self.operators.version())
            result = await self.operators.deploy(service, wanted)
            if result is not None and not result.outcome.refused:
                return
        raise AssertionError(await report(self, [f"{service.kind.name} takes no configuration"]))

    async def _newest(self, service: Operated) -> services.Wanted:
        """What the service says that it was last told; it must be known, and be the last that it
        took."""
        name = service.kind.name

        async def look() -> str:
            client = await self.cluster.client()
            return (await client.configuration(name)).reason

        reason = await self.cluster.until(f"{name} tells its configuration", look, bool)
        wanted = self.ledger.by_reason[reason].wanted
        assert wanted is not None
        if service.sure and wanted != service.wanted:
            said = "; ".join(self.ledger.changes(name)[-6:])
            self.operators.faults.append(
                f"{name} is {wanted} by {reason}, and took {service.wanted}; it was told: {said}"
            )
        return wanted

    async def _converged(self) -> list[str]:
        """What is still wrong when the time is up; nothing as soon as it is."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CONVERGES_WITHIN
        clean, faults = 0, ["nothing was seen"]
        lifted = 0.0
        while loop.time() < deadline:
            try:
                if loop.time() - lifted > 2:
                    await self._lift()
                    lifted = loop.time()
                faults = await self._faults()
            except (PlansError, ServerUnreachableError, RPCError) as error:
                faults = [f"not to be looked at: {error}"]
            clean = 0 if faults else clean + 1
            if clean == LOOKS:
                self.ledger.tell("everything is as it was last said to be")
                return []
            await asyncio.sleep(0.5)
        return faults

    async def _faults(self) -> list[str]:
        faults = await verdict.cluster_faults(self.cluster, self.operators)
        for service in self.operators.services.values():
            faults += await verdict.service_faults(self.cluster, service)
        return faults

    async def _keep_lifting(self) -> None:
        while True:
            try:
                await self._lift()
            except (PlansError, ServerUnreachableError, RPCError) as error:
                self.ledger.tell(f"nothing is lifted: {error}"[:150])
            await asyncio.sleep(2)

    async def _lift(self) -> None:
        """Interrupts, gates and pauses: continue what waits for an operator."""
        for service in self.operators.services.values():
            client = await self.cluster.client()
            for plan in await client.plans(service.kind.name):
                if plan.name in verdict.UPKEEP and plan.status is not Status.COMPLETE:
                    await self._lift_plan(service, plan.name)
            for pod in await client.pods(service.kind.name):
                if set(pod.shown.values()) & {"PAUSED", "PAUSING"}:
                    await self.operators.pod(service, PodVerb.RESUME, pod.name)

    async def _lift_plan(self, service: Operated, plan: str) -> None:
        view: PlanView = await self.cluster.view(f"{service.kind.name}/{plan}")
        if view.status is Status.WAITING:
            await self.operators.plan(service, plan, Verb.CONTINUE)
        for phase in view.phases:
            if phase.status is Status.WAITING:
                await self.operators.plan(service, plan, Verb.CONTINUE, phase.name)

    # --- accounts ---

    async def _accounts(self) -> list[str]:
        """Launches, commands and histories."""
        launches = real_tasks.launches(list(self.harm.work_dirs.values()))
        histories = verdict.Histories(self.harm.frozen)
        await histories.read(self._bare)
        self.ledger.tell(f"{histories.workflows} workflows, {histories.events} events")
        newest = [
            record.task_id
            for service in self.operators.services.values()
            for record in (await service.life.records()).values()
            if record.status and record.status.state in (TaskState.RUNNING, TaskState.FINISHED)
        ]
        faults = histories.faults + verdict.launch_faults(launches, newest, histories.recorded)
        faults += await verdict.command_faults(self._bare, self.ledger)
        try:
            await assert_all_replays(self.cluster.server.address)
        except AssertionError as error:
            faults.append(str(error))
        return faults

    def _summary(self) -> str:
        answers = [one.answer for one in self.ledger.given]
        said = ", ".join(f"{answers.count(answer)} {answer.value}" for answer in Answer)
        harm = ", ".join(f"{n} {kind}" for kind, n in sorted(self.harm.kills.items()))
        return f"commands: {said}; kills: {harm}; at most {self.watch.most} tasks at a time"
