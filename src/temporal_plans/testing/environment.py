"""Runs plans in tests: a Temporal server, and a worker with the plugin and your code."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.worker import Worker

from temporal_plans.client.errors import Refused, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.strategies.record import Select
from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.change_check import ConfigValidator
from temporal_plans.domain.services.plan_customizer import PlanCustomizer
from temporal_plans.domain.services.recovery.book import Recoverer
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.loading.plans import load_plan
from temporal_plans.loading.services.service import load_service
from temporal_plans.messages.addresses import PLANS_QUEUE, service_id
from temporal_plans.testing.agents import agents_of
from temporal_plans.testing.histories import save_histories
from temporal_plans.testing.running_plan import RunningPlan
from temporal_plans.testing.time_skipping import DYNAMIC_CONFIG, TimeSkipping
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.registry import StepKind

_SDK_EXIT_DELAY = 0.3
"""Seconds that the threads of Temporal's SDK may need to end. They sometimes abort a process that
exits before."""

_STICKY_TIMEOUT = timedelta(seconds=1)
"""The time that a command waits for a stopped worker before another worker gets it."""

Functions = Sequence[Callable[..., Any]]


class PlanEnvironment:
    """An asynchronous context in which plans run.

    It starts its own dev server without a database, unless a connected ``client`` is given: then it
    uses that server, with its own task queue. ``activities``, ``workflows``, ``strategies`` and
    ``step_kinds`` are your own code, as for your worker and ``PlansPlugin``, and so are
    ``recoverers``, ``plan_customizers`` and ``config_validators``, which services need;
    ``task_queues`` are the activities of further workers by task queue. ``agents`` is the number of
    agents that run pods and commands as processes of this machine, on a task queue ``plans`` that
    no other worker of the server may poll.

    ``time_skipping``: sleeps, back-offs and timeouts of plans pass at once while nothing else is
    at work. Plan, phase and step each have a clock of their own then, so the times of two phases
    may overlap. It needs a server of its own, and excludes agents, whose tasks take real time.
    ``max_cached_workflows`` 0 replays every workflow at every workflow task, which detects code
    that is not deterministic. ``timeout`` limits every wait.

    At the end it terminates plans and services that still run, and stops agents, workers and the
    server. Raises the errors of ``DevServer`` and ``PlansPlugin``, and ValueError for settings that
    exclude each other.
    """

    def __init__(
        self,
        *,
        client: Client | None = None,
        activities: Functions = (),
        workflows: Sequence[type] = (),
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
        recoverers: Sequence[Recoverer] = (),
        plan_customizers: Sequence[PlanCustomizer] = (),
        config_validators: Sequence[ConfigValidator] = (),
        agents: int = 0,
        task_queues: Mapping[str, Functions] | None = None,
        passthrough: Sequence[str] = (),
        time_skipping: bool = False,
        max_cached_workflows: int = 1000,
        timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        if time_skipping and (agents or client is not None):
            reason = "tasks of agents take real time" if agents else "the server must allow it"
            raise ValueError(
                f"time_skipping: {reason}; leave out {'agents' if agents else 'client'}"
            )
        self._plugin = PlansPlugin(
            strategies=strategies,
            step_kinds=step_kinds,
            recoverers=recoverers,
            plan_customizers=plan_customizers,
            config_validators=config_validators,
            passthrough=passthrough,
        )
        self._agents = agents
        self._time_skipping = time_skipping
        self._started: set[str] = set()
        self.pool = f"test-{uuid4()}" if agents else "default"
        self._given_client = client
        self._workflows = workflows
        self._activities = activities
        self._task_queues = dict(task_queues or {})
        self._passthrough = passthrough
        self._max_cached_workflows = max_cached_workflows
        self._timeout = timeout
        self._resources = AsyncExitStack()
        self._worker = AsyncExitStack()
        self._executor: ThreadPoolExecutor | None = None
        self._client: Client | None = None
        self.task_queue = PLANS_QUEUE if agents else f"plans-{uuid4()}"

    @property
    def client(self) -> Client:
        """A client that converts the plans' values. Raises RuntimeError outside of the context."""
        if self._client is None:
            raise RuntimeError(
                "PlanEnvironment: not started; use `async with PlanEnvironment(...)`"
            )
        return self._client

    @property
    def plans(self) -> PlansClient:
        """The client with all verbs of the command line, also those that ``RunningPlan`` lacks."""
        return PlansClient(gateway=TemporalGateway(self.client, task_queue=self.task_queue))

    async def start(
        self,
        plan: PlanSpec | Path,
        arguments: Mapping[str, str] | None = None,
        *,
        plan_id: str = "",
    ) -> RunningPlan:
        """Start a plan, or the plan in a file. Its workflow id is unique unless one is given.

        Raises SpecError for an invalid plan or arguments, and Refused for an id that is taken.
        """
        spec = load_plan(plan) if isinstance(plan, Path) else plan
        plan_id = plan_id or f"{spec.name}-{uuid4()}"
        running = self.running(await self.plans.run(spec, plan_id=plan_id, arguments=arguments))
        self._started.add(running.id)
        self._resources.push_async_callback(self._terminate, running.id)
        return running

    async def deploy(
        self,
        service: ServiceSpec | Path,
        values: Mapping[str, str] | None = None,
        *,
        rollout: Rollout | None = None,
    ) -> RunningPlan:
        """Install a service, or change it, and return its plan ``deploy``. A path is that of a
        service file, which is rendered with ``values``.

        Raises SpecError for an invalid service, and Refused with all reasons for a configuration
        that is refused.
        """
        spec = service
        if isinstance(spec, Path):
            spec = load_service(spec, values or {}, backend=unsupported)
        deployment = Deployment(spec=spec, pool=self.pool, rollout=rollout or Rollout(), by="test")
        result = await self.plans.deploy(deployment)
        if spec.name not in self._started:
            self._started.add(spec.name)
            self._resources.push_async_callback(self._terminate_service, spec.name)
        if result.outcome.refused:
            refusal = result.outcome.refusal or Refusal.of(Code.FAILED, result.outcome.message)
            problems = result.change.problems if result.change else ()
            raise Refused(refusal.but(reasons=problems) if problems else refusal)
        return self.running(result.plan)

    def running(self, plan_id: str) -> RunningPlan:
        """Return the plan with this workflow id, for example ``hello/recovery`` of a service."""
        return RunningPlan(plan_id, self.plans, self._timeout)

    async def save_histories(self, directory: Path) -> list[Path]:
        """Write the histories of all workflows that this environment started to files, which
        ``testing.check_replays`` reads; return the files."""
        ids = set[str]()
        for name in self._started:
            ids |= {name} if await self.plans.exists(name) else await self._workflows_of(name)
        return await save_histories(self.client, sorted(ids), directory)

    async def run(
        self,
        plan: PlanSpec | Path,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: timedelta | None = None,
    ) -> PlanRun:
        """Start a plan and wait until it is at rest: COMPLETE, in ERROR, or ended otherwise.

        Raises as ``start`` does, NotReached after ``timeout``, and Unreadable when the worker
        refuses the plan.
        """
        running = await self.start(plan, arguments)
        return await running.at_rest(timeout=timeout)

    async def restart_worker(
        self,
        *,
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
        recoverers: Sequence[Recoverer] = (),
        plan_customizers: Sequence[PlanCustomizer] = (),
        config_validators: Sequence[ConfigValidator] = (),
    ) -> None:
        """Stop the worker and start another one with these extensions.

        As with a deployment of yours, running activities are cancelled and workflows are replayed.
        """
        await self._worker.aclose()
        self._plugin = PlansPlugin(
            strategies=strategies,
            step_kinds=step_kinds,
            recoverers=recoverers,
            plan_customizers=plan_customizers,
            config_validators=config_validators,
            passthrough=self._passthrough,
        )
        await self._start_worker()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as resources:
            self._client = self._given_client or await self._start_server(resources)
            self._executor = resources.enter_context(ThreadPoolExecutor())
            resources.push_async_callback(self._stop_worker)
            await self._start_worker()
            for queue, functions in self._task_queues.items():
                worker = Worker(
                    _without_plugins(self._client),
                    task_queue=queue,
                    activities=functions,
                    activity_executor=self._executor,
                )
                await resources.enter_async_context(worker)
            if self._agents:
                plain = _without_plugins(self._client)
                await resources.enter_async_context(
                    agents_of(plain, self.plans, self.pool, self._agents, self._timeout)
                )
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._resources.aclose()
        finally:
            self._client = None
        if self._given_client is None:
            await asyncio.sleep(_SDK_EXIT_DELAY)

    async def _start_server(self, resources: AsyncExitStack) -> Client:
        skipping = self._time_skipping
        server = DevServer(dynamic_config=DYNAMIC_CONFIG if skipping else None)
        address = (await resources.enter_async_context(server)).address
        return await Client.connect(
            address,
            data_converter=pydantic_data_converter,
            interceptors=[TimeSkipping()] if skipping else [],
        )

    async def _start_worker(self) -> None:
        self._client = _with_plugin(self.client, self._plugin)
        worker = Worker(
            self._client,
            task_queue=self.task_queue,
            workflows=self._workflows,
            activities=self._activities,
            activity_executor=self._executor,
            max_cached_workflows=self._max_cached_workflows,
            sticky_queue_schedule_to_start_timeout=_STICKY_TIMEOUT,
        )
        await self._worker.enter_async_context(worker)

    async def _stop_worker(self) -> None:
        await self._worker.aclose()

    async def _terminate(self, plan_id: str) -> None:
        """Terminate a plan while the worker still runs, so that its children are cancelled."""
        with suppress(RPCError):  # it has ended
            await self.client.get_workflow_handle(plan_id).terminate("the test is over")

    async def _terminate_service(self, name: str) -> None:
        """Terminate a service before its plans, so that it starts none of them again."""
        workflows = await self._workflows_of(name)
        for workflow_id in sorted(workflows, key=lambda one: one != service_id(name)):
            await self._terminate(workflow_id)

    async def _workflows_of(self, service: str) -> set[str]:
        try:
            plans = await self.plans.plans(service)
        except ServiceNotFound:  # uninstalled
            return set()
        return {service_id(service), *(plan.workflow_id for plan in plans if plan.run)}


def _with_plugin(client: Client, plugin: PlansPlugin) -> Client:
    """Return a client of the same connection whose only plans plugin is this one."""
    config = client.config()
    others = [other for other in config["plugins"] if not isinstance(other, PlansPlugin)]
    config["plugins"] = [*others, plugin]
    return Client(**config)


def _without_plugins(client: Client) -> Client:
    """Return a client as the plugins configured it, for workers that do not run plans."""
    config = client.config(active_config=True)
    config["plugins"] = []
    return Client(**config)
