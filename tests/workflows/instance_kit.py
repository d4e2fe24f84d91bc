"""What the tests of installed packages share: one under test, and its removal."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from temporalio.client import WorkflowHandle
from temporalio.service import RPCError

from pauses import until
from temporal_plans.activities.contents.choice import content_store
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import PackageDefinition, definition_of
from temporal_plans.domain.packages.package import OPERATOR_FILE
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.commands import Command, Outcome
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.messages.owners import StartPlan
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    Inventory,
    PackageDeployResult,
)
from temporal_plans.messages.plan_views import PlanView
from workflows.package_programs import ScriptedCluster
from workflows.plan_kit import Kit


async def stored(plans: Kit, files: Mapping[str, bytes]) -> PackageDefinition:
    """A package, in the content store: a content of a module's own, since it is served by the
    worker of that module."""
    own = f"# {plans.queue}\n".encode()
    files = {**files, OPERATOR_FILE: files[OPERATOR_FILE] + own}
    read = read_files(files, "store")
    assert not read.faults
    contents = content_store(plans.client, {}, task_queue=plans.queue)
    return definition_of(read.package, await contents.put(write_archive(files)))


class Store:
    """One installed package under test, of these files."""

    def __init__(self, plans: Kit, cluster: ScriptedCluster, package: Mapping[str, bytes]) -> None:
        self.name = f"store-{uuid4()}"
        self._plans = plans
        self._package = package
        self.cluster = cluster

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self._plans.client.get_workflow_handle(f"service/{self.name}")

    async def install(self, **more: Any) -> None:
        change = ChangeRequest(
            package=await stored(self._plans, self._package),
            instance="store",
            cluster=self.cluster.name,
            namespace="prod",
        )
        await self._plans.client.start_workflow(
            "Instance",
            InstanceInput(name=self.name, change=change, **more),
            id=f"service/{self.name}",
            task_queue=self._plans.queue,
        )

    async def deploy(self, change: ChangeRequest | None = None, **parameters: str | None) -> Any:
        change = change or ChangeRequest(parameters=parameters)
        result: PackageDeployResult = await self.handle.execute_update(
            "deploy",
            InstanceInput(name=self.name, change=change, by="ann", reason="why"),
            result_type=PackageDeployResult,
        )
        return result

    async def start(self, plan: str, **more: Any) -> Outcome:
        outcome: Outcome = await self.handle.execute_update(
            "start_plan", StartPlan(plan=plan, **more), result_type=Outcome
        )
        return outcome

    async def command(self, plan: str, verb: str, **more: Any) -> Outcome:
        run = self._plans.client.get_workflow_handle(f"{self.name}/{plan}")
        outcome: Outcome = await run.execute_update(verb, Command(**more), result_type=Outcome)
        return outcome

    async def status(self) -> InstanceStatus:
        answer: InstanceStatus = await self.handle.query("status", result_type=InstanceStatus)
        return answer

    async def view(self, plan: str) -> PlanView:
        run = self._plans.client.get_workflow_handle(f"{self.name}/{plan}")
        answer: PlanView = await run.query("status", result_type=PlanView)
        return answer

    async def reached(self, plan: str, status: Status, *, run: int = 1) -> None:
        """Wait until the instance knows that a run of a plan has this status."""

        async def records() -> dict[str, tuple[int, Status]]:
            return {one.name: (one.run, one.status) for one in (await self.status()).plans}

        await until(records, lambda found: found.get(plan) == (run, status))

    async def run_id(self, plan: str) -> str:
        """The newest run of a plan."""
        run = self._plans.client.get_workflow_handle(f"{self.name}/{plan}")
        return (await run.describe()).run_id

    async def result(self, plan: str, run_id: str) -> Any:
        """The result of a run of a plan, which must have ended."""
        run = self._plans.client.get_workflow_handle(f"{self.name}/{plan}", run_id=run_id)
        assert (await run.describe()).close_time is not None
        return await run.result()

    async def inventory(self) -> list[str]:
        answer: Inventory = await self.handle.query("inventory", result_type=Inventory)
        return [one.name for one in answer.objects]

    async def remove(self) -> None:
        """Terminate what is left of it."""
        plans = read_files(self._package, "store").package.operator.plans
        for name in ("service/" + self.name, *(f"{self.name}/{one}" for one in {*plans, CLEANUP})):
            with suppress(RPCError):  # it has ended, or never was
                await self._plans.client.get_workflow_handle(name).terminate()
