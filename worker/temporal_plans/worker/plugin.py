"""``PlansPlugin``: everything that a worker needs to run plans, in one line (temporal.md 1).

``Client.connect(..., plugins=[PlansPlugin()])`` gives the client the data converter, and every
worker made from it the workflows, the activities, the guard, and what developers registered.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pydantic
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from temporal_plans.activities.configurations import ConfigurationActivities
from temporal_plans.activities.offers import OfferActivities
from temporal_plans.activities.plans import PlanActivities
from temporal_plans.activities.pods import PodActivities
from temporal_plans.activities.scheduled import ScheduledActivities
from temporal_plans.activities.upkeep import UpkeepActivities
from temporal_plans.domain.change_check import ConfigValidator
from temporal_plans.domain.model import build_all
from temporal_plans.domain.plan_customizer import PlanCustomizer
from temporal_plans.domain.recovery_book import Recoverer
from temporal_plans.domain.strategies import NAMES, Select
from temporal_plans.worker.sandbox import PlansSandbox, looks_at_contexts
from temporal_plans.worker.steady_runner import Evictions, SteadyRunner
from temporal_plans.workflows.guard import PlansInterceptor
from temporal_plans.workflows.phase import Phase
from temporal_plans.workflows.plan import Plan
from temporal_plans.workflows.pool import PoolWorkflow
from temporal_plans.workflows.registry import Registry, StepKind
from temporal_plans.workflows.scheduled_run import ScheduledRun
from temporal_plans.workflows.service import Service
from temporal_plans.workflows.step import Step
from temporal_plans.workflows.unknown import UnknownWorkflow

WORKFLOWS: tuple[type, ...] = (Plan, Phase, Step, Service, PoolWorkflow, ScheduledRun)

PASSTHROUGH = (
    "temporal_plans",  # its modules hold no state; loading them anew for each run costs 25 ms
    "opentelemetry",  # the spans' context must be the process's own
    "pystache",  # imported by loading.mustache
    "re2",  # imported by domain.patterns
    "yaml",  # imported by loading
)


class PlansPlugin(SimplePlugin):
    """Adds plans to a client and its workers.

    ``strategies`` and ``step_kinds`` are the developer's own, by the names that plans use.
    ``recoverers`` are asked in order how a failed pod is brought back, ``plan_customizers`` change
    generated plans before they run, ``config_validators`` refuse configurations.
    ``passthrough`` names their modules that workflows may share with the process. ``guard`` keeps
    bad messages from wedging workflows; ``unknown`` makes unknown workflow types fail at once, and
    is off for a worker that has a dynamic workflow of its own.

    Raises ValueError for a name that is taken, and for what is no function.
    """

    def __init__(
        self,
        *,
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
        recoverers: Sequence[Recoverer] = (),
        plan_customizers: Sequence[PlanCustomizer] = (),
        config_validators: Sequence[ConfigValidator] = (),
        passthrough: Sequence[str] = (),
        guard: bool = True,
        unknown: bool = True,
    ) -> None:
        registry = Registry(
            strategies=dict(strategies or {}),
            kinds=dict(step_kinds or {}),
            recoverers=tuple(recoverers),
            plan_customizers=tuple(plan_customizers),
            config_validators=tuple(config_validators),
        )
        _check(registry)
        build_all()
        self._registry = registry
        self._evictions = Evictions()
        types = (*WORKFLOWS, UnknownWorkflow) if unknown else WORKFLOWS
        super().__init__(
            "temporal-plans.PlansPlugin",
            data_converter=_converter,
            workflows=list(types),
            interceptors=[PlansInterceptor(registry, guard=guard), self._evictions],
            workflow_runner=lambda runner: _runner(runner, passthrough),
            workflow_failure_exception_types=[pydantic.ValidationError],
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """The activities need the client of the worker that they are made for, and the sandbox its
        converter."""
        config = super().configure_worker(config)
        client = config.get("client")
        if client is not None:
            config["activities"] = [
                *config.get("activities", []),
                *activities(client, self._registry),
            ]
            if (runner := config.get("workflow_runner")) is not None:
                config["workflow_runner"] = _in_our_sandbox(runner, client.data_converter)
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Makes the worker known to the runs that it has to forget (``steady_runner``)."""
        with self._evictions.of(worker):
            await super().run_worker(worker, next)


def activities(client: Client, registry: Registry) -> list[Callable[..., Any]]:
    """The activities of the plans queue: those that talk to Temporal and nothing else."""
    configurations = ConfigurationActivities(registry.config_validators, registry.plan_customizers)
    offers, plans, pods = OfferActivities(client), PlanActivities(client), PodActivities(client)
    scheduled, upkeep = ScheduledActivities(client), UpkeepActivities(client)
    return [
        offers.reserve,
        offers.release,
        offers.check_owners,
        configurations.check_change,
        plans.start_plan,
        plans.closed_plans,
        pods.prepare_pod,
        upkeep.retire_task,
        upkeep.release_reservation,
        upkeep.erase_task,
        upkeep.deregister,
        scheduled.start_scheduled_plan,
        scheduled.wait_for_plan,
        scheduled.stop_scheduled_plan,
    ]


def _converter(converter: DataConverter | None) -> DataConverter:
    """Pydantic's, with whatever codec the user has; a converter of the user's own is left alone."""
    if converter is None:
        return pydantic_data_converter
    if converter.payload_converter_class is DefaultPayloadConverter:
        return dataclasses.replace(converter, payload_converter_class=PydanticPayloadConverter)
    return converter


def _runner(runner: WorkflowRunner | None, passthrough: Sequence[str]) -> WorkflowRunner:
    if runner is None:
        runner = SandboxedWorkflowRunner()
    if isinstance(runner, SandboxedWorkflowRunner):
        restrictions = runner.restrictions.with_passthrough_modules(*PASSTHROUGH, *passthrough)
        return dataclasses.replace(
            runner, restrictions=restrictions, runner_class=_steady(runner.runner_class)
        )
    return SteadyRunner() if type(runner) is UnsandboxedWorkflowRunner else runner


def _in_our_sandbox(runner: WorkflowRunner, converter: DataConverter) -> WorkflowRunner:
    if type(runner) is not SandboxedWorkflowRunner:
        return runner
    return PlansSandbox(
        restrictions=runner.restrictions,
        runner_class=runner.runner_class,
        contexts=looks_at_contexts(converter),
    )


def _steady(runner: type[WorkflowRunner]) -> type[WorkflowRunner]:
    """A runner of the user's own is left alone."""
    return SteadyRunner if runner is UnsandboxedWorkflowRunner else runner


def _check(registry: Registry) -> None:
    taken = sorted(NAMES & set(registry.strategies))
    if taken:
        raise ValueError(f"strategies: {', '.join(taken)} is built in; choose another name")
    for what, entries in (("strategies", registry.strategies), ("step_kinds", registry.kinds)):
        for name, entry in entries.items():
            if not callable(entry):
                raise ValueError(f"{what}: {name} is no function but {entry!r}")
    for what, functions in (
        ("recoverers", registry.recoverers),
        ("plan_customizers", registry.plan_customizers),
        ("config_validators", registry.config_validators),
    ):
        for function in functions:
            if not callable(function):
                raise ValueError(f"{what}: {function!r} is no function")
