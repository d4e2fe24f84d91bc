"""An installed package under test, through the verbs that people have."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from kubernetes.place import Place
from pauses import until
from temporal_plans.client.errors import PlansError
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.verbs.packages import MAIN_CLUSTER, PackageDeployment
from temporal_plans.domain.owners.runs import RunRecord
from temporal_plans.domain.packages.installation import Switches
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.packages.nested import PackageTree, load_tree
from temporal_plans.loading.packages.verification import verify
from temporal_plans.messages.packages import PackageDeployResult
from temporal_plans.messages.plan_views import PlanView

PLAN_TIMEOUT = 150.0
"""Seconds that a plan may take on a machine that is several times slower than this needs."""


async def verified(source: Path) -> PackageTree:
    """Read a package, whose errors fail the test. It takes a second: not of the test's own loop,
    where others may wait for a server's answer."""
    tree = load_tree(source)
    for each in tree.packages.values():
        assert not (errors := (await asyncio.to_thread(verify, each.read)).errors), errors
    return tree


class Installed:
    """The service ``name``, in a namespace of a cluster, with settings."""

    def __init__(
        self,
        place: Place,
        name: str,
        namespace: str,
        *,
        cluster: str = MAIN_CLUSTER,
        settings: Switches | None = None,
    ) -> None:
        self.place = place
        self.name = name
        self.namespace = namespace
        self.cluster = cluster
        self.settings = settings or Switches()

    async def deploy(
        self,
        source: Path | PackageTree | None = None,
        parameters: Mapping[str, str | None] | None = None,
    ) -> PackageDeployResult:
        """Install or change it; a refusal fails the test."""
        answer = await self.asked(source, parameters)
        assert not answer.outcome.refused, "\n".join(map(str, answer.problems))
        return answer

    async def asked(
        self,
        source: Path | PackageTree | None = None,
        parameters: Mapping[str, str | None] | None = None,
    ) -> PackageDeployResult:
        """Install or change it, or be refused."""
        deployment = PackageDeployment(
            name=self.name,
            parameters=dict(parameters or {}),
            cluster=self.cluster,
            namespace=self.namespace,
            settings=self.settings,
        )
        if source is not None:
            tree = await verified(source) if isinstance(source, Path) else source
            nested = [each.archive for each in tree.packages.values() if each is not tree.root]
            deployment = deployment.but(
                package=tree.root.package, archive=tree.root.archive, nested=tuple(nested)
            )
        return await (await self.place.client()).deploy_package(deployment)

    async def deployed(
        self,
        source: Path | PackageTree | None = None,
        parameters: Mapping[str, str | None] | None = None,
    ) -> str:
        """Install or change it, wait until the plan is COMPLETE, and return the plan's name."""
        answer = await self.deploy(source, parameters)
        plan = answer.plan.rpartition("/")[2]
        await self.until_complete(plan, config=answer.number)
        return plan

    async def start(self, plan: str) -> None:
        """Start a plan, and wait until it is COMPLETE."""
        before = len(await self.runs(plan))
        await self.order(plan, Verb.START)
        await self.until_complete(plan, runs=before + 1)

    async def order(self, plan: str, verb: Verb) -> None:
        client = await self.place.client()
        outcome = await client.command(f"{self.name}/{plan}", verb, Command(by="test"))
        assert not outcome.refused, outcome

    async def roll_back(self, config: str) -> str:
        """Roll back to a configuration, wait, and return the name of the plan."""
        client = await self.place.client()
        answer = await client.rollback_package(self.name, config)
        assert not answer.outcome.refused, answer.problems
        plan = answer.plan.rpartition("/")[2]
        await self.until_complete(plan, config=answer.number)
        return plan

    async def uninstall(self, *, volumes: bool = False) -> PlanView:
        """Uninstall it, wait until it is gone, and return how its plan ``cleanup`` ended."""
        client = await self.place.client()
        outcome = await client.uninstall(self.name, volumes=volumes)
        assert not outcome.refused, outcome
        cleanup = f"{self.name}/cleanup"
        gone = await client.wait_until_gone(self.name, timeout=timedelta(seconds=PLAN_TIMEOUT))
        view = (await client.show(cleanup)).view
        assert gone, readable(view)
        return view

    # --- what is the case ---

    async def runs(self, plan: str) -> Sequence[RunRecord]:
        history = await (await self.place.client()).history(self.name)
        return [run for run in history.runs if run.plan == plan]

    async def view(self, plan: str) -> PlanView:
        return (await (await self.place.client()).show(f"{self.name}/{plan}")).view

    async def until_complete(
        self, plan: str, *, config: int = 0, runs: int = 1, patience: float = PLAN_TIMEOUT
    ) -> None:
        """Wait until the newest run of a plan is COMPLETE: of a configuration, or the ``runs``-th.
        While nobody answers it is not yet. Fails at once when it is in ERROR."""

        async def look() -> Sequence[RunRecord]:
            try:
                found = await self.runs(plan)
                if found and found[-1].status is Status.ERROR:
                    raise AssertionError(readable(await self.view(plan)))
            except (PlansError, ServerUnreachableError):
                return ()
            return found

        def done(found: Sequence[RunRecord]) -> bool:
            if len(found) < runs or (config and found[-1].config != config):
                return False
            return found[-1].status is Status.COMPLETE and found[-1].ended is not None

        try:
            await until(look, done, patience=patience)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{readable(await self.view(plan))}") from None

    async def until_status(self, plan: str, status: Status, *, config: int = 0) -> None:
        """Wait until the newest run of a plan, of a configuration, has a status."""

        def reached(found: Sequence[RunRecord]) -> bool:
            if not found or (config and found[-1].config != config):
                return False
            return found[-1].status is status

        await until(lambda: self.runs(plan), reached)

    async def until_ready(self) -> None:
        """Wait until the instance says that all its objects are healthy."""
        client = await self.place.client()

        async def reason() -> str:
            status = await client.instance(self.name)
            return str(status.readiness.reason) if status.readiness else ""

        await until(reason, lambda found: found == "ResourcesReady", patience=PLAN_TIMEOUT)


def readable(view: PlanView) -> str:
    """A plan with the reasons of its steps, for the text of a failure."""
    lines = [f"{view.id} {view.status} {'; '.join(view.errors)}"]
    for phase in view.phases:
        lines += [
            f"  {phase.name}/{step.name} {step.status} {step.message}" for step in phase.steps
        ]
    return "\n".join(lines)
