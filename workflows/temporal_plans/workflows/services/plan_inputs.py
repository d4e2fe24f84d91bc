"""The inputs of a service's plans."""

from collections.abc import Callable
from typing import Any

from temporalio import workflow

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.owners.rollout import rolled_out
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.initial_state import Former
from temporal_plans.domain.services.plan_names import DECOMMISSION, DEPLOY, RECOVERY
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.owners import PlanBegin, PlanRecord
from temporal_plans.messages.plans import EngineInput, OwnerContext, PlanInput, PodContext
from temporal_plans.workflows.services.changes import ServiceChanges
from temporal_plans.workflows.services.deployments import ServiceDeployments

EMPTY_DECOMMISSION = PlanSpec(name=DECOMMISSION)
"""The decommission plan when nothing is left to remove."""


class PlanInputs:
    """Makes the inputs of plans that start now, for the configuration in force."""

    def __init__(
        self,
        configs: ConfigurationBook[Configuration],
        changes: ServiceChanges,
        deployments: ServiceDeployments,
        problem: Callable[[str, str], None],
    ) -> None:
        """``problem`` records why forced elements can't be kept."""
        self._configs = configs
        self._changes = changes
        self._deployments = deployments
        self._problem = problem

    def make(self, begin: PlanBegin, record: PlanRecord, *, uninstalling: bool) -> PlanInput:
        """Return the input of a plan. When ``uninstalling``, the plan deploy removes everything."""
        pods = PodContext(pool=self._deployments.input.pool)
        context = OwnerContext(
            owner=self._configs.target.spec.name,
            workflow_id=workflow.info().workflow_id,
            plan=record.name,
            run=record.run,
            starter=workflow.info().first_execution_run_id,
            priority=record.priority,
            pods=pods,
        )
        engine = EngineInput(context=context, first=(begin.first,) if begin.first else ())
        common: dict[str, Any] = {
            "backoff": self._deployments.input.backoff,
            "arguments": begin.first.command.parameters if begin.first else {},
        }
        if record.name == RECOVERY:
            spec = PlanSpec(name=RECOVERY, strategy=StrategySpec(name="parallel"))
            return _input(spec, engine.but(standing=True), **common)
        if record.name == DECOMMISSION:
            return _input(self._changes.decommission() or EMPTY_DECOMMISSION, engine, **common)
        if record.name != DEPLOY:
            spec = self._deployments.specs[record.name]
            return _input(spec, engine, interrupted=begin.interrupted, **common)
        if uninstalling:
            return _input(self._changes.uninstall(), engine, **common)
        pods = pods.but(config_id=self._configs.target.id)
        return self._deployment(begin, engine.but(context=context.but(pods=pods)), common)

    def _deployment(
        self, begin: PlanBegin, engine: EngineInput, common: dict[str, Any]
    ) -> PlanInput:
        spec = rolled_out(self._deployments.specs[DEPLOY], begin.rollout)
        # A plan that is started again resumes from its last state; a terminated one from this.
        state = self._changes.initial(spec, self._former(begin))
        engine = engine.but(state=state, errors=self._deployments.rejected)
        return _input(spec, engine, **common)

    def _former(self, begin: PlanBegin) -> Former | None:
        """Return the superseded deployment with its forced elements; None without those."""
        if not begin.forced:
            return None
        try:
            configuration = self._configs.get(begin.former)
            once = self._deployments.done_once
            plans = self._changes.plans(configuration, deployed_once=once)
        except RefusedError as error:
            self._problem("deploy", f"forced elements are not kept: {error}")
            return None
        return Former.forced(plans[DEPLOY], begin.forced, configuration.spec)


def _input(spec: PlanSpec, engine: EngineInput, **more: Any) -> PlanInput:
    """Return the input of a plan's workflow. The plan was validated when it was made."""
    fields = {field: getattr(spec, field) for field in type(spec).model_fields}
    return PlanInput.model_construct(**fields, engine=engine, **more)
