"""A process with telemetry on that runs one small tree; run by test_telemetry.py.

A process of its own, because OpenTelemetry keeps one tracer provider a process for ever.
Arguments: the server's address, the telemetry setting, how many workflows the worker keeps
(with none, every workflow task replays from the start).
"""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from temporal_plans.client.temporal.connection import Connection, connect
from temporal_plans.worker.telemetry import telemetry
from temporal_plans.workflows.mechanics.tracing import span

QUEUE = "traced"


@activity.defn
async def launch(step: str) -> str:
    return step


@workflow.defn
class TracedStep:
    @workflow.run
    async def run(self, step: str) -> str:
        with span(f"step {step}", step=step):
            await workflow.sleep(timedelta(milliseconds=20))
            return await workflow.execute_activity(
                launch, step, start_to_close_timeout=timedelta(seconds=10)
            )


@workflow.defn
class TracedPhase:
    @workflow.run
    async def run(self, steps: list[str]) -> list[str]:
        with span("phase hello"):
            return [await self._step(step) for step in steps]

    async def _step(self, step: str) -> str:
        return await workflow.execute_child_workflow(
            TracedStep.run, step, id=f"traced/deploy/hello/{step}"
        )


@workflow.defn
class TracedPlan:
    @workflow.run
    async def run(self, steps: list[str]) -> list[str]:
        with span("plan deploy", service="traced"):
            return await workflow.execute_child_workflow(
                TracedPhase.run, steps, id="traced/deploy/hello"
            )


async def main(address: str, setting: str, cached: str) -> None:
    traced = telemetry(setting, "traced-program")
    client = await connect(
        Connection(address=address), plugins=traced.plugins, runtime=traced.runtime
    )
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[TracedPlan, TracedPhase, TracedStep],
        activities=[launch],
        max_cached_workflows=int(cached),
        workflow_runner=SandboxedWorkflowRunner(
            SandboxRestrictions.default.with_passthrough_modules("temporal_plans", "opentelemetry")
        ),
    )
    async with worker:
        await client.execute_workflow(
            TracedPlan.run, ["a", "b"], id="traced/deploy", task_queue=QUEUE
        )
        await asyncio.to_thread(sys.stdin.read)  # until the test has seen the metrics
    traced.shutdown()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
