"""What `explain` says of a step whose work is with a worker, or with none."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.testing import WorkflowEnvironment

from pauses import until
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.explain import Cause, Explanation
from workflows.plan_kit import Kit, Run, kit

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    async with kit(env.client.service_client.config.target_host) as made:
        yield made


Steps = Mapping[str, Explanation]


async def explained(plans: Kit, run: Run, wanted: Callable[[Steps], object]) -> Steps:
    """What is said of each step, once it is as wanted."""
    client = PlansClient(plans.client)

    async def look() -> Steps:
        answer = await client.explain(run.handle.id)
        return {one.step: one for one in answer.explanations}

    return await until(look, wanted)


def a_has_no_worker(steps: Steps) -> bool:
    return "a" in steps and steps["a"].cause is Cause.WORKER


@MODES
async def test_an_activity_that_no_worker_takes(plans: Kit, mode: str) -> None:
    queue = f"nobody-{uuid4()}"
    step = {"activity": {"type": "dump", "task-queue": queue}}
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": {"a": step}}}})
    [work] = (await explained(plans, run, a_has_no_worker))["a"].work
    assert (work.type, work.queue, work.taken, work.asked) == ("dump", queue, False, None)
    await run.handle.cancel()


async def test_an_activity_that_a_worker_has_and_one_that_is_tried_again(plans: Kit) -> None:
    plans.recorder.gates["held"] = asyncio.Event()
    run = await plans.start(
        {
            "phases": {
                "p": {
                    "strategy": "parallel",
                    "steps": {
                        "held": {"activity": {"type": "work", "input": "held"}},
                        "unknown": {
                            "activity": {"type": "nothing", "retry": {"initial-interval": "1h"}}
                        },
                    },
                }
            }
        }
    )

    def one_is_held_and_one_has_failed(steps: Steps) -> bool:
        held, unknown = (steps[name].work if name in steps else () for name in ("held", "unknown"))
        return bool(held and held[0].taken and unknown and unknown[0].again)

    found = await explained(plans, run, one_is_held_and_one_has_failed)
    assert {one.cause for one in found.values()} == {Cause.RUNNING}
    [held], [unknown] = found["held"].work, found["unknown"].work
    assert (held.type, held.attempt, bool(held.worker)) == ("work", 1, True)
    assert unknown.attempt == 2
    assert "nothing" in unknown.failure
    assert "not registered" in unknown.failure
    plans.recorder.gates.pop("held").set()
    await run.handle.cancel()


@MODES
async def test_a_workflow_that_no_worker_takes(plans: Kit, mode: str) -> None:
    step = {"workflow": {"type": "Sweep", "task-queue": f"nobody-{uuid4()}"}}
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": {"a": step}}}})
    [work] = (await explained(plans, run, a_has_no_worker))["a"].work
    assert (work.type, work.taken) == ("Sweep", False)
    assert work.id.startswith(f"{run.handle.id}/p/a/")
    await run.handle.cancel()
