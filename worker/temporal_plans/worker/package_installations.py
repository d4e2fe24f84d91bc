"""Operator packages of entities, driven by the client of the worker."""

import asyncio
from collections.abc import Sequence

from temporal_plans.activities.contents.errors import ContentError
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.fleets.installations import PackageChange
from temporal_plans.client.errors import NotFound, Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.owners.runs import RunRecord
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, SpecError
from temporal_plans.loading.packages.stored import stored_package
from temporal_plans.messages.fleets.payloads import PACKAGE_FILE

_BY = "fleet"
_POLL_INTERVAL = 1.0  # seconds
_PASSING = (Code.IN_USE, Code.NOT_REENTRANT)
"""Refusals that end with the plan that runs."""


class ClientPackages:
    """``PackageInstallations`` over a PlansClient of the same server. ``contents`` has the
    archives."""

    def __init__(self, client: PlansClient, contents: ContentStore) -> None:
        self._client = client
        self._contents = contents

    async def faults(self, digest: str, nested: Sequence[str]) -> Sequence[Reason]:
        """Return why a package can't be published: its archive, or that of a nested one, is not
        in the content store, or can't be read."""
        reasons: list[Reason] = []
        packages: list[Package] = []
        for one in (digest, *nested):
            try:
                packages.append(stored_package(await self._contents.get(one), one))
            except ContentError as error:
                reasons += error.refusal.reasons
            except SpecError as error:
                reasons += [one.but(field=f"{PACKAGE_FILE}: {one.field}") for one in error.reasons]
        missing = set(packages[0].nested.contents) - set(nested) if packages else set[str]()
        for one in sorted(missing) if not reasons else ():
            fix = "publish the folder of the package, which names all nested ones"
            reasons.append(Reason(field="nested", problem="is missing", value=one, fix=fix))
        return reasons

    async def check(self, change: PackageChange) -> Refusal | None:
        """Return why a change would be refused by what is installed, whatever runs."""
        try:
            preview = await self._client.preview_package(await self._deployment(change))
        except Refused as error:
            return error.refusal
        if not preview.problems:
            return None
        return Refusal(code=Code.CONFIGURATION, reasons=preview.problems)

    async def deploy(self, change: PackageChange) -> None:
        """Deploy it, and retry while a plan of the service is in the way. Raises Refused."""
        deployment = await self._deployment(change)
        while True:
            answer = await self._client.deploy_package(deployment)
            if not answer.outcome.refused:
                break
            refusal = answer.outcome.refusal
            if refusal is None or refusal.code not in _PASSING:
                raise Refused(refusal or Refusal(code=Code.CONFIGURATION, reasons=answer.problems))
            await asyncio.sleep(_POLL_INTERVAL)
        if not answer.outcome.changed:
            await self._repeat(change.name)

    async def _repeat(self, name: str) -> None:
        """Begin the plan of the configuration in force again, if it has failed, and wait until its
        record says so."""
        failed = await self._run_of_target(name)
        if failed is None or failed.status is not Status.ERROR:
            return
        await self._client.command(f"{name}/{failed.plan}", Verb.RESTART, Command(by=_BY))
        while (run := await self._run_of_target(name)) is not None:
            if (run.run, run.status) != (failed.run, failed.status):
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _deployment(self, change: PackageChange) -> PackageDeployment:
        try:
            archive = await self._contents.get(change.digest)
            package = stored_package(archive, change.digest)
        except ContentError as error:
            raise Refused(error.refusal) from None
        except SpecError as error:
            raise Refused(error.refusal) from None
        known = {one.name for one in package.parameters}
        offered = {name: text for name, text in change.offered.items() if name in known}
        kept = {} if await self._is_new(change.name) else await self._immutable(change, package)
        given = {**kept, **offered, **change.parameters}
        return PackageDeployment(
            name=change.name,
            package=package,
            archive=archive,
            parameters={name: given[name] for name in sorted(given.keys() - change.secrets.keys())},
            secrets=dict(change.secrets),
            exact=True,
            instance=change.instance,
            cluster=change.cluster,
            namespace=change.namespace,
            allow_downgrade=change.downgrade,
            by=_BY,
            reason=change.reason,
        )

    async def _is_new(self, name: str) -> bool:
        return await self._client.content_of(name) != "package"

    async def _immutable(self, change: PackageChange, package: Package) -> dict[str, str]:
        """Return the values of immutable parameters, which stay as they were installed."""
        kept = await self._client.package_configurations(change.name)
        configs = {one.id: one for one in kept.configurations}
        given = configs[kept.target].installation.given if kept.target in configs else {}
        fixed = {one.name for one in package.parameters if one.immutable}
        return {name: text for name, text in given.items() if name in fixed}

    async def wait(self, name: str) -> str:
        """Wait until the plan that the configuration in force started is COMPLETE. Return why it is
        in ERROR; empty without."""
        while True:
            try:
                run = await self._run_of_target(name)
            except NotFound:
                return f"service {name} is gone"
            if run is None:
                return ""
            if run.status is Status.COMPLETE and run.ended is not None:
                return ""
            if run.status is Status.ERROR:
                return await self._errors(name, run.plan)
            await asyncio.sleep(_POLL_INTERVAL)

    async def _run_of_target(self, name: str) -> RunRecord | None:
        """Return the newest run of the plan that the configuration in force started; None when
        there was nothing to do."""
        number = (await self._client.instance(name)).number
        runs = [one for one in (await self._client.history(name)).runs if one.config == number]
        return next((one for one in reversed(runs) if one.plan == runs[0].plan), None)

    async def _errors(self, name: str, plan: str) -> str:
        plan_id = f"{name}/{plan}"
        try:
            view = (await self._client.show(plan_id)).view
        except NotFound:
            return f"plan {plan_id} is in ERROR"
        errors = [
            f"{phase.name}/{step.name}: {'; '.join(step.errors) or step.message}"
            for phase in view.phases
            for step in phase.steps
            if step.status is Status.ERROR
        ]
        return f"plan {plan_id}: {'; '.join(errors or view.errors) or 'is in ERROR'}"
