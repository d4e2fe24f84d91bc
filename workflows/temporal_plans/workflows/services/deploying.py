"""The handlers ``deploy`` and ``rollback`` of a service."""

from collections.abc import Callable

from temporalio import workflow

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.plans.commands import Command, Outcome
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.owners import Rollback
from temporal_plans.messages.services import (
    ChangeView,
    DeployResult,
    ServiceInput,
)
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.services.deployments import ServiceDeployments


class Deploying(Owner):
    """A base class of the Service workflow. ``_refused``: why the first configuration can't be
    deployed."""

    _configs: ConfigurationBook[Configuration]
    _deployments: ServiceDeployments
    _refused: tuple[Reason, ...]

    @workflow.update(
        name="deploy", description="Deploy a configuration. Input: what the Service starts with."
    )
    async def deploy(self, input: ServiceInput) -> DeployResult:
        await workflow.wait_condition(lambda: self.begun or bool(self._refused))
        if self._refused:
            refusal = Refusal(code=Code.CONFIGURATION, reasons=self._refused)
            return DeployResult(
                config_id="",
                plan="",
                outcome=Outcome.refusing(refusal),
                change=ChangeView(problems=self._refused),
            )
        return await self._deploy(lambda: input)

    @deploy.validator
    def _check_deploy(self, input: ServiceInput) -> None:
        self.refuse_when_uninstalling()

    async def _deploy(self, wanted: Callable[[], ServiceInput], source: str = "") -> DeployResult:
        input, result = await self._deployments.deploy(
            wanted, source, self.refuse_when_uninstalling
        )
        command = Command(by=input.by, reason=input.reason)
        accepted = not result.outcome.refused  # a refused configuration gets no number
        verb = f"deploy {result.number}" if accepted else "deploy"
        self.log.command(verb, command, result.outcome, via="update", now=workflow.now())
        return result

    @workflow.update(
        name="rollback", description="Deploy an earlier configuration again. Input {config}."
    )
    async def rollback(self, request: Rollback) -> DeployResult:
        await workflow.wait_condition(lambda: self.begun)
        found = self._configs.find(request.config)
        return await self._deploy(
            lambda: self._deployments.input.but(
                spec=found.spec,
                plans=found.plans,
                rollout=request.rollout,
                by=request.by,
                reason=request.reason,
                state=None,
            ),
            source=found.id,
        )

    @rollback.validator
    def _check_rollback(self, request: Rollback) -> None:
        self.refuse_when_uninstalling()
        self._configs.find(request.config)
