"""What a service's plans begin with."""

from collections.abc import Callable
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.initial_state import Former
from temporal_plans.domain.plan import PlanSpec, StrategySpec
from temporal_plans.domain.rollout import rolled_out
from temporal_plans.messages.plan import PlanInput, ServiceContext
from temporal_plans.messages.service import PlanBegin, PlanRecord
from temporal_plans.workflows.service_changes import ServiceChanges
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_deployments import ServiceDeployments
from temporal_plans.workflows.service_plans import DECOMMISSION, DEPLOY, RECOVERY

NOTHING = PlanSpec(name=DECOMMISSION)
"""What is left to take away when all has gone meanwhile."""


class PlanInputs:
    """Of plans that begin now, for the configuration in force now."""

    def __init__(
        self,
        configs: ServiceConfigs,
        changes: ServiceChanges,
        deployments: ServiceDeployments,
        problem: Callable[[str, str], None],
    ) -> None:
        """``problem`` takes what is in the way of keeping what was forced."""
        self._configs = configs
        self._changes = changes
        self._deployments = deployments
        self._problem = problem

    def make(self, begin: PlanBegin, record: PlanRecord, *, uninstalling: bool) -> PlanInput:
        """The input of one plan. While ``uninstalling``, the deployment is what takes all away."""
        context = ServiceContext(
            service=self._configs.target.spec.name,
            workflow_id=workflow.info().workflow_id,
            plan=record.name,
            run=record.run,
            starter=workflow.info().first_execution_run_id,
            pool=self._deployments.input.pool,
            priority=record.priority,
        )
        common: dict[str, Any] = {
            "backoff": self._deployments.input.backoff,
            "context": context,
            "first": (begin.first,) if begin.first else (),
            "arguments": begin.first.command.parameters if begin.first else {},
        }
        if record.name == RECOVERY:
            spec = PlanSpec(name=RECOVERY, strategy=StrategySpec(name="parallel"))
            return _input(spec, standing=True, **common)
        if record.name == DECOMMISSION:
            return _input(self._changes.decommission() or NOTHING, **common)
        if record.name != DEPLOY:
            spec = self._deployments.specs[record.name]
            return _input(spec, interrupted=begin.interrupted, **common)
        if uninstalling:
            return _input(self._changes.uninstall(), **common)
        common["context"] = context.but(config_id=self._configs.target.id)
        return self._deployment(begin, common)

    def _deployment(self, begin: PlanBegin, common: dict[str, Any]) -> PlanInput:
        spec = rolled_out(self._deployments.specs[DEPLOY], begin.rollout)
        # One that is begun again goes on from its end; from this, if it was terminated.
        state = self._changes.initial(spec, self._former(begin))
        return _input(spec, state=state, errors=self._deployments.rejected, **common)

    def _former(self, begin: PlanBegin) -> Former | None:
        """The deployment that this one takes the place of, as far as somebody forced it."""
        if not begin.forced:
            return None
        try:
            configuration = self._configs.get(begin.former)
            once = self._deployments.done_once
            plans = self._changes.plans(configuration, deployed_once=once)
        except (ApplicationError, SpecError) as error:
            self._problem("deploy", f"what was forced is not kept: {error}")
            return None
        return Former.forced(plans[DEPLOY], begin.forced, configuration.spec)


def _input(spec: PlanSpec, **more: Any) -> PlanInput:
    """A plan as its workflow begins. It was validated when it was made."""
    fields = {field: getattr(spec, field) for field in type(spec).model_fields}
    return PlanInput.model_construct(**fields, **more)
