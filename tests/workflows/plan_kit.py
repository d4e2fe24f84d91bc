"""What the tests of plans share: a worker with the plugin, small activities, and waiting."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from acceptance.histories import assert_all_replays
from pauses import PATIENCE, Pauses
from temporal_plans.domain.plans.commands import Command, Outcome, Verb
from temporal_plans.domain.plans.explain import ElementQuery, Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import (
    PLAN_RUN,
    PLAN_STARTER,
    CommandLog,
    EngineInput,
    PlanInput,
    PlanResult,
)
from temporal_plans.worker.plugin import PlansPlugin

REPLAYED = (
    "WorkflowType IN"
    " ('Plan', 'Phase', 'Step', 'Service', 'Instance', 'Environment', 'Product', 'Spoke')"
    # A plan with a name that its worker does not know fails, which no replay asks again.
    " AND ExecutionStatus != 'Failed'"
    # The longest ones take a replay many seconds.
    " AND (ExecutionStatus = 'Running' OR HistoryLength < 3000)"
)


@dataclass
class Recorder:
    """Activities that write down when they ran. ``failures`` says how often one still fails."""

    begun: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    failures: dict[str, int] = field(default_factory=dict[str, int])
    gates: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    @activity.defn(name="work")
    async def work(self, name: str = "") -> str:
        """Done at once, unless it is to fail, or held at a gate of that name."""
        self.begun.append(name)
        if self.failures.get(name, 0) > 0:
            self.failures[name] -= 1
            raise ApplicationError(f"{name} is broken", type="Broken", non_retryable=True)
        if name in self.gates:
            await self.gates[name].wait()
        self.done.append(name)
        return name

    @activity.defn(name="noop")
    async def noop(self) -> None:
        return None


@dataclass
class Kit:
    """A client with the plugin, and the queue of a worker of its own."""

    client: Client
    queue: str
    recorder: Recorder

    async def start(self, plan: dict[str, Any], *, id: str = "", **more: Any) -> "Run":
        """A plan; what belongs to the engine's part of its input is started as the engine does."""
        said = {"name": "test", **plan, **more}
        engine = {name: said.pop(name) for name in EngineInput.model_fields if name in said}
        input = PlanInput.model_validate({**said, **({"engine": engine} if engine else {})})
        memo: dict[str, Any] = {PLAN_STARTER: ""}
        if input.engine is not None and (context := input.engine.context) is not None:
            memo = {PLAN_STARTER: context.starter, PLAN_RUN: context.run}
            id = id or f"{context.owner}/{context.plan}"
        handle = await self.client.start_workflow(
            "Plan",
            input,
            id=id or f"plan-{uuid4()}",
            task_queue=self.queue,
            result_type=PlanResult,
            memo=memo if engine else None,
        )
        return Run(handle)


@dataclass
class Run:
    """One plan's run, with the verbs that tests use."""

    handle: WorkflowHandle[Any, PlanResult]

    async def view(self) -> PlanView:
        answer: PlanView = await self.handle.query("status", result_type=PlanView)
        return answer

    async def log(self) -> CommandLog:
        answer: CommandLog = await self.handle.query("log", result_type=CommandLog)
        return answer

    async def explain(self, phase: str = "", step: str = "") -> Explanations:
        query = ElementQuery(phase=phase, step=step)
        answer: Explanations = await self.handle.query("explain", query, result_type=Explanations)
        return answer

    async def update(self, verb: Verb, phase: str = "", step: str = "", **more: Any) -> Outcome:
        command = Command(phase=phase, step=step, **more)
        outcome: Outcome = await self.handle.execute_update(verb, command, result_type=Outcome)
        return outcome

    async def until(self, condition: Callable[[PlanView], bool]) -> PlanView:
        """The first view of which that is true."""
        end, pauses = time.monotonic() + PATIENCE, Pauses()
        while True:
            view = await self.view()
            if condition(view):
                return view
            assert time.monotonic() < end, f"not in time: {view.model_dump_json(indent=1)}"
            await pauses.pause()

    async def until_status(self, status: Status) -> PlanView:
        return await self.until(lambda view: view.status is status)

    async def result(self, *, patience: float = PATIENCE) -> PlanResult:
        return await asyncio.wait_for(self.handle.result(), patience)


def statuses(view: PlanView, phase: int = 0) -> list[str]:
    return [step.status.value for step in view.phases[phase].steps]


@asynccontextmanager
async def kit(
    address: str,
    plugin: PlansPlugin | None = None,
    *,
    cached: int = 1000,
    workflows: Sequence[type] = (),
) -> AsyncGenerator[Kit]:
    """A worker for plans on a queue of its own; ``cached`` 0 replays at every workflow task.

    At the end all that it did is replayed once more, from beginning to end.
    """
    recorder = Recorder()
    plugin = plugin or PlansPlugin()
    client = await Client.connect(address, plugins=[plugin])
    queue = f"plans-{uuid4()}"
    async with Worker(
        client,
        task_queue=queue,
        workflows=workflows,
        activities=[recorder.work, recorder.noop],
        max_cached_workflows=cached,
        graceful_shutdown_timeout=timedelta(seconds=1),
    ):
        yield Kit(client, queue, recorder)
    mine = f"TaskQueue = '{queue}' AND {REPLAYED}"
    await assert_all_replays(address, mine, plugin=plugin)


def steps(*names: str, **works: Any) -> dict[str, Any]:
    """Steps that run the activity ``work`` with their own name."""
    return {name: {"activity": {"type": "work", "input": name}} for name in names} | works
