"""Long plans begin new runs of their workflows, and lose nothing over it."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from pauses import PATIENCE
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from workflows.plan_kit import Kit, Run, kit, statuses, steps

MODES = pytest.mark.parametrize(
    ("mode", "count"),
    [pytest.param("child", 60, id="child"), pytest.param("inline", 150, id="inline")],
)
"""More steps than a phase has in flight at once."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    async with kit(env.client.service_client.config.target_host, cached=5000) as made:
        yield made


async def runs_of(client: Client, workflow_id: str) -> int:
    """How many runs the chain of a workflow has, counted backwards from its last."""
    count, run_id = 0, None
    while True:
        handle = client.get_workflow_handle(workflow_id, run_id=run_id)
        count += 1
        async for event in handle.fetch_history_events():
            attributes = event.workflow_execution_started_event_attributes
            run_id = attributes.continued_execution_run_id or None
            break
        if run_id is None:
            return count


async def several_runs(client: Client, workflow_id: str) -> None:
    """Until the workflow has continued as new, which it does when it comes to it."""
    end = time.monotonic() + PATIENCE
    while await runs_of(client, workflow_id) == 1:
        assert time.monotonic() < end, f"{workflow_id} has not continued as new"
        await asyncio.sleep(0.05)


@MODES
async def test_a_phase_continues_as_new_and_runs_every_step_once(
    plans: Kit, mode: str, count: int
) -> None:
    names = [f"{mode}-{n}" for n in range(count)]
    run = await plans.start(
        {
            "steps": mode,
            "history_limit": 100,
            "phases": {"p": {"strategy": "parallel", "steps": steps(*names)}},
        }
    )
    result = await run.result()
    assert result.status is Status.COMPLETE
    assert sorted(n for n in plans.recorder.done if n.startswith(mode)) == sorted(names)
    assert await runs_of(plans.client, f"{run.handle.id}/p") > 1


@MODES
async def test_what_waits_is_taken_along(plans: Kit, mode: str, count: int) -> None:
    """Approvals and sleeps are left in the middle and taken up by the next run."""
    names = [f"along-{mode}-{n}" for n in range(count)]
    run = await plans.start(
        {
            "steps": mode,
            "history_limit": 100,
            "phases": {
                "p": {
                    "strategy": "parallel",
                    "steps": {
                        "ok": {"approval": "look"},
                        "long": {"sleep": "1h"},
                        **steps(*names),
                    },
                }
            },
        }
    )
    await run.until(lambda view: statuses(view)[2:] == ["COMPLETE"] * count)
    await several_runs(plans.client, f"{run.handle.id}/p")
    view = await run.until(lambda view: statuses(view)[:2] == ["WAITING", "STARTING"])
    assert view.phases[0].steps[0].attempt == 1
    assert (await run.update(Verb.CONTINUE, "p", "ok")).changed
    await run.until(lambda view: statuses(view)[0] == "COMPLETE")
    assert (await run.update(Verb.FORCE_COMPLETE, "p", "long")).changed
    assert (await run.result()).status is Status.COMPLETE


async def _say(run: Run, count: int) -> None:
    """Signals that change nothing and must all be in the log."""
    for number in range(count):
        await run.handle.signal("continue", {"reason": f"signal {number}"})


async def test_no_signal_is_lost_while_a_plan_continues_as_new(plans: Kit) -> None:
    run = await plans.start(
        {
            "history_limit": 60,
            "phases": {"p": {"steps": {"ok": {"approval": True}, **steps("after")}}},
        }
    )
    await run.until_status(Status.WAITING)
    await asyncio.gather(*(_say(run, 40) for _ in range(3)))
    entries = (await run.log()).entries
    assert len([e for e in entries if e.verb == "continue"]) == 120
    await several_runs(plans.client, run.handle.id)
    if (await run.view()).phases[0].steps[0].status is not Status.COMPLETE:
        await run.update(Verb.CONTINUE, "p", "ok")
    assert (await run.result()).status is Status.COMPLETE


@pytest.mark.cached("a plan of 2,000 steps would be replayed 2,000 times")
async def test_a_plan_of_2000_steps(plans: Kit) -> None:
    """With the limits that users have. A thousand steps a phase are 7,000 events and more."""
    many = {f"s{i}": {"activity": "noop"} for i in range(2000)}
    run = await plans.start(
        {"steps": "inline", "phases": {"many": {"strategy": "parallel", "steps": many}}}
    )
    for number in range(5):
        await run.handle.signal("continue", {"reason": f"signal {number}"})
    result = await asyncio.wait_for(run.handle.result(), 200)
    assert result.status is Status.COMPLETE
    assert {step.status for step in result.view.phases[0].steps} == {Status.COMPLETE}
    assert len((await run.log()).entries) == 5
    assert await runs_of(plans.client, f"{run.handle.id}/many") > 1
