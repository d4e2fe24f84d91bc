"""A place to run plans in tests: a Temporal server, and a worker with the plugin and your code."""

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

from temporal_plans.client.gateway import TemporalGateway
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.strategies import Select
from temporal_plans.loading.plans import load_plan
from temporal_plans.testing.running_plan import RunningPlan
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.registry import StepKind

_SETTLE = 0.3
"""Seconds that the threads of Temporal's SDK may need to end. They abort, now and then, a process
that exits before."""

_FAILOVER = timedelta(seconds=1)
"""How long a command waits for a worker that was stopped, before the one after it gets it."""

Functions = Sequence[Callable[..., Any]]


class PlanEnvironment:
    """An asynchronous context in which plans run.

    It starts a dev server of its own, without a database, unless a connected ``client`` is given:
    then it uses that server, on a task queue of its own. ``activities``, ``workflows``,
    ``strategies`` and ``step_kinds`` are your own code, as you would give them to your worker and
    to ``PlansPlugin``; ``task_queues`` are the activities of further workers by their task queue.
    ``max_cached_workflows`` 0 replays every workflow at every turn, which shows code that is not
    deterministic. ``timeout`` bounds every wait.

    At the end it stops the workers and the server, and terminates plans that still run. Raises what
    ``DevServer`` and ``PlansPlugin`` raise.
    """

    def __init__(
        self,
        *,
        client: Client | None = None,
        activities: Functions = (),
        workflows: Sequence[type] = (),
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
        task_queues: Mapping[str, Functions] | None = None,
        passthrough: Sequence[str] = (),
        max_cached_workflows: int = 1000,
        timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        self._plugin = PlansPlugin(
            strategies=strategies, step_kinds=step_kinds, passthrough=passthrough
        )
        self._given = client
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
        self.task_queue = f"plans-{uuid4()}"

    @property
    def client(self) -> Client:
        """A client that speaks the plans' values."""
        if self._client is None:
            raise RuntimeError("plans run inside `async with PlanEnvironment(...)` only")
        return self._client

    @property
    def plans(self) -> PlansClient:
        """The verbs of the command line, for what ``RunningPlan`` does not offer."""
        return PlansClient(gateway=TemporalGateway(self.client, task_queue=self.task_queue))

    async def start(
        self,
        plan: PlanSpec | Path,
        arguments: Mapping[str, str] | None = None,
        *,
        plan_id: str = "",
    ) -> RunningPlan:
        """Start a plan, or the plan in a file. Its workflow id is made new unless one is given.

        Raises SpecError for a plan or arguments that can't be, and Refused for an id that is taken.
        """
        spec = load_plan(plan) if isinstance(plan, Path) else plan
        plan_id = plan_id or f"{spec.name}-{uuid4()}"
        running = RunningPlan(
            await self.plans.run(spec, plan_id=plan_id, arguments=arguments),
            self.plans,
            self._timeout,
        )
        self._resources.push_async_callback(self._end, running.id)
        return running

    async def run(
        self,
        plan: PlanSpec | Path,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: timedelta | None = None,
    ) -> PlanRun:
        """Start a plan and wait until it is at rest: COMPLETE, in ERROR, or ended otherwise.

        Raises as ``start`` does, NotReached when it takes too long, and Unreadable when the worker
        refuses the plan.
        """
        running = await self.start(plan, arguments)
        return await running.at_rest(timeout=timeout)

    async def restart_worker(
        self,
        *,
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
    ) -> None:
        """Stop the worker and start one that knows these strategies and step kinds.

        As a deployment of yours does: activities that run are cut off, workflows are replayed.
        """
        await self._worker.aclose()
        self._plugin = PlansPlugin(
            strategies=strategies, step_kinds=step_kinds, passthrough=self._passthrough
        )
        await self._start_worker()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as resources:
            self._client = self._given or await _own_server(resources)
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
        if self._given is None:
            await asyncio.sleep(_SETTLE)

    async def _start_worker(self) -> None:
        self._client = _with_plugin(self.client, self._plugin)
        worker = Worker(
            self._client,
            task_queue=self.task_queue,
            workflows=self._workflows,
            activities=self._activities,
            activity_executor=self._executor,
            max_cached_workflows=self._max_cached_workflows,
            sticky_queue_schedule_to_start_timeout=_FAILOVER,
        )
        await self._worker.enter_async_context(worker)

    async def _stop_worker(self) -> None:
        await self._worker.aclose()

    async def _end(self, plan_id: str) -> None:
        """While the worker still runs, so that what the plan started can hear of it."""
        with suppress(RPCError):  # it has ended
            await self.client.get_workflow_handle(plan_id).terminate("the test is over")


async def _own_server(resources: AsyncExitStack) -> Client:
    server = await resources.enter_async_context(DevServer())
    return await Client.connect(server.address, data_converter=pydantic_data_converter)


def _with_plugin(client: Client, plugin: PlansPlugin) -> Client:
    """A client of the same connection, whose workers run plans with this plugin and no other."""
    config = client.config()
    others = [other for other in config["plugins"] if not isinstance(other, PlansPlugin)]
    config["plugins"] = [*others, plugin]
    return Client(**config)


def _without_plugins(client: Client) -> Client:
    """What the plugins made of the client, for workers that shall not run plans too."""
    config = client.config(active_config=True)
    config["plugins"] = []
    return Client(**config)
