"""Plans that stop on an error, that are not reentrant, that rest; and what steps keep."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment

from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.step_context import StepContext
from workflows.plan_kit import Kit, kit, statuses, steps
from workflows.service_programs import ServiceKit

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


async def tally(step: StepContext) -> int:
    """Counts its attempts in what it keeps, and ends with the second."""
    count: int = (step.kept or 0) + 1
    step.keep(count)
    step.say(f"counted {count}")
    await workflow.wait_condition(lambda: count >= 2)
    return count


async def hoard(step: StepContext) -> None:
    step.keep("x" * 4000)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    plugin = PlansPlugin(step_kinds={"tally": tally, "hoard": hoard})
    async with kit(env.client.service_client.config.target_host, plugin) as made:
        yield made


def parallel(*phases: dict[str, Any], mode: str, **more: Any) -> dict[str, Any]:
    """A parallel plan of the parallel phases a, b, …"""
    named = {
        name: {"strategy": "parallel", "steps": steps}
        for name, steps in zip("abc", phases, strict=False)
    }
    return {"strategy": "parallel", "steps": mode, "phases": named, **more}


@MODES
async def test_an_error_halts_the_plan_until_it_is_restarted(
    plans: Kit, service: ServiceKit, mode: str
) -> None:
    bad, beside, far, late = (f"{name}-{uuid4()}" for name in ("bad", "beside", "far", "late"))
    recorder = plans.recorder
    recorder.failures[bad] = 1
    for name in (beside, far):
        recorder.gates[name] = asyncio.Event()
    far_then_late = {"strategy": "serial", "steps": steps(far, late)}
    plan = parallel({"ok": {"approval": "go"}, **steps(beside)}, mode=mode, on_error="stop")
    plan["phases"] |= {"b": far_then_late, "c": {"steps": {"ok": {"approval": "go"}, **steps(bad)}}}
    run = await plans.start(plan, context=service.context(follows_rest=True))
    await run.until(
        lambda view: (
            [statuses(view, i) for i in (0, 1, 2)]
            == [["WAITING", "STARTING"], ["STARTING", "PENDING"], ["WAITING", "PENDING"]]
        )
    )
    await run.update(Verb.CONTINUE, "c", "ok")  # bad fails now
    view = await run.until(
        lambda view: (
            [statuses(view, i) for i in (0, 1, 2)]
            == [["PENDING"] * 2, ["PENDING"] * 2, ["COMPLETE", "ERROR"]]
        )
    )
    reason = f"step {bad} of phase c is in error"
    assert (view.status, view.halted) == (Status.ERROR, reason)
    assert [step.message for step in view.phases[0].steps] == [f"halted: {reason}"] * 2
    assert view.phases[1].steps[0].message == f"halted: {reason}"
    assert (await run.explain()).explanations[0].cause is Cause.HALTED
    told = await service.until(lambda told: told.reports[-1].resting)
    assert told.reports[-1].status is Status.ERROR
    assert late not in recorder.begun

    for name in (beside, far):
        recorder.gates.pop(name).set()
    await run.update(Verb.RESTART, "c", bad)
    view = await run.until(lambda view: statuses(view, 0)[0] == "WAITING")
    assert view.halted == ""
    await run.update(Verb.CONTINUE, "a", "ok")
    result = await run.result()
    assert result.status is Status.COMPLETE
    assert {step.message for phase in result.view.phases for step in phase.steps} == {""}
    assert recorder.begun.count(far) == 2


@MODES
async def test_without_it_other_phases_go_on(plans: Kit, mode: str) -> None:
    bad, other = f"bad-{uuid4()}", f"other-{uuid4()}"
    plans.recorder.failures[bad] = 1
    run = await plans.start(parallel(steps(bad), steps(other), mode=mode))
    view = await run.until(
        lambda view: [statuses(view, i) for i in (0, 1)] == [["ERROR"], ["COMPLETE"]]
    )
    assert view.halted == ""
    await run.update(Verb.FORCE_COMPLETE)
    await run.result()


@MODES
async def test_what_a_step_keeps_outlives_a_halt_and_no_restart(plans: Kit, mode: str) -> None:
    bad = f"bad-{uuid4()}"
    plans.recorder.failures[bad] = 2
    first = {"ok": {"approval": "go"}, **steps(bad)}
    plan = parallel({}, {"count": {"custom": "tally"}}, mode=mode, on_error="stop")
    plan["phases"]["a"] = {"steps": first}
    run = await plans.start(plan)

    def counted(view: Any) -> str:
        return str(view.phases[1].steps[0].message)

    await run.until(lambda view: counted(view) == "counted 1")
    await run.update(Verb.RESTART, "b", "count")
    await run.until(lambda view: counted(view) == "counted 1")  # not 2: it is forgotten
    await run.update(Verb.CONTINUE, "a", "ok")
    await run.until(lambda view: counted(view).startswith("halted: "))
    await run.update(Verb.FORCE_COMPLETE, "a", bad)
    result = await run.result()
    assert result.state is not None
    kept = result.state.phases[1].steps[0]
    assert (kept.status, kept.kept) == (Status.COMPLETE, None)


async def test_a_step_that_keeps_too_much_fails(plans: Kit) -> None:
    run = await plans.start({"phases": {"p": {"steps": {"s": {"custom": "hoard"}}}}})
    view = await run.until_status(Status.ERROR)
    assert "must be 4000 bytes at most (found 4002)" in view.errors[0]
    await run.update(Verb.FORCE_COMPLETE)
    await run.result()


async def test_a_plan_that_is_not_reentrant_is_repeated_by_force_only(plans: Kit) -> None:
    name = f"once-{uuid4()}"
    plans.recorder.gates[name] = asyncio.Event()
    run = await plans.start({"reentrant": False, "phases": {"p": {"steps": steps(name)}}})
    await run.until(lambda view: statuses(view) == ["STARTING"])
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(Verb.RESTART, "p", name)
    assert "is not reentrant and has begun" in str(refused.value.cause)
    await run.handle.signal("stop", {"reason": "by signal"})
    assert (await run.update(Verb.RESTART, "p", name, force=True)).changed
    plans.recorder.gates.pop(name).set()
    assert (await run.result()).status is Status.COMPLETE
    assert plans.recorder.begun.count(name) == 2
    entries = (await run.log()).entries
    assert [(entry.verb, entry.force, entry.outcome.refused) for entry in entries] == [
        ("stop", False, True),
        ("restart", True, False),
    ]


@MODES
async def test_an_owner_hears_that_a_plan_rests(plans: Kit, service: ServiceKit, mode: str) -> None:
    """A plan that was stopped is told from a plan that was interrupted."""
    name = f"held-{uuid4()}"
    plans.recorder.gates[name] = asyncio.Event()
    plan = {"steps": mode, "phases": {"p": {"steps": steps(name, f"next-{name}")}}}
    run = await plans.start(plan, context=service.context(follows_rest=True))
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    await run.update(Verb.INTERRUPT)
    await service.until(lambda told: told.reports[-1].status is Status.WAITING)
    plans.recorder.gates[name].set()
    told = await service.until(lambda told: told.reports[-1].resting)
    assert [(one.status, one.resting, one.stopped) for one in told.reports[-2:]] == [
        (Status.WAITING, False, False),
        (Status.WAITING, True, False),
    ]
    await run.update(Verb.STOP)
    await service.until(lambda told: told.reports[-1].stopped)
    await run.update(Verb.START)
    assert (await run.result()).status is Status.COMPLETE
