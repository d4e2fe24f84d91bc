"""Plans whose service has another take their place, and plans with errors of their own."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio.client import WorkflowUpdateFailedError

from temporal_plans.api.dialect import http_code
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plans import (
    PLAN_RUN,
    PLAN_STARTER,
    PlanFaults,
    PlanInput,
    PlanResult,
    Supersede,
)
from workflows.plan_kit import Kit, Run, statuses, steps
from workflows.service_programs import ServiceKit

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


async def supersede(run: Run) -> None:
    await run.handle.signal("supersede", Supersede(why="configuration 2"))


async def ends_superseded(run: Run, service: ServiceKit) -> PlanResult:
    result = await run.result()
    assert result.superseded
    told = await service.until(lambda told: bool(told.reports) and not told.reports[-1].open)
    assert told.reports[-1].superseded
    assert [report.open for report in told.reports].count(False) == 1
    return result


@MODES
async def test_it_leaves_what_waits_and_begins_nothing(
    plans: Kit, service: ServiceKit, mode: str
) -> None:
    first, last = f"first-{uuid4()}", f"last-{uuid4()}"
    run = await plans.start(
        {
            "steps": mode,
            "phases": {
                "a": {"steps": steps(first)},
                "b": {"steps": {"ok": {"approval": "look"}, **steps(last)}},
            },
        },
        context=service.context(),
    )
    await run.until_status(Status.WAITING)
    await supersede(run)
    result = await ends_superseded(run, service)
    assert [statuses(result.view, i) for i in (0, 1)] == [["COMPLETE"], ["WAITING", "PENDING"]]
    assert last not in plans.recorder.begun


@MODES
@pytest.mark.engine(leave_timeout=timedelta(seconds=5))
async def test_what_cannot_be_left_is_cancelled_and_no_error(
    own_plans: Kit, service: ServiceKit, mode: str
) -> None:
    stuck = f"stuck-{uuid4()}"
    own_plans.recorder.gates[stuck] = asyncio.Event()
    run = await own_plans.start(
        {"steps": mode, "phases": {"p": {"steps": steps(stuck, f"next-{stuck}")}}},
        context=service.context(),
    )
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    await supersede(run)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(Verb.RESTART, "p", stuck)
    assert "configuration 2" in str(refused.value.cause)
    await run.handle.signal("interrupt", {})
    result = await ends_superseded(run, service)
    assert result.status is not Status.ERROR
    assert f"next-{stuck}" not in own_plans.recorder.begun
    assert [http_code(entry.outcome) for entry in (await run.log()).entries] == [409]
    own_plans.recorder.gates.pop(stuck).set()


async def test_a_plan_that_never_began_ends_at_once(plans: Kit, service: ServiceKit) -> None:
    run = await plans.start(
        {"phases": {"p": {"steps": steps("never")}}, "interrupted": True},
        context=service.context(),
    )
    await run.until_status(Status.WAITING)
    await supersede(run)
    await supersede(run)
    await ends_superseded(run, service)


async def test_it_comes_together_with_the_start(plans: Kit, service: ServiceKit) -> None:
    name = f"together-{uuid4()}"
    input = PlanInput.model_validate(
        {
            "name": "test",
            "engine": {"context": service.context()},
            "phases": {"p": {"steps": steps(name)}},
        }
    )
    handle = await plans.client.start_workflow(
        "Plan",
        input,
        id=f"{service.context()['owner']}/test",
        memo={PLAN_STARTER: "", PLAN_RUN: 0},
        task_queue=plans.queue,
        result_type=PlanResult,
        start_signal="supersede",
        start_signal_args=[Supersede()],
    )
    await ends_superseded(Run(handle), service)
    assert name not in plans.recorder.begun


async def test_what_is_forced_is_told_at_the_end(plans: Kit, service: ServiceKit) -> None:
    run = await plans.start(
        {"phases": {"p": {"steps": {"ok": {"approval": True}, "more": {"approval": True}}}}},
        context=service.context(),
    )
    await run.until_status(Status.WAITING)
    await run.update(Verb.FORCE_COMPLETE, "p", "ok")
    await supersede(run)
    await ends_superseded(run, service)
    told = await service.told()
    assert told.reports[-1].forced == ("p/ok",)
    assert all(report.run_id for report in told.reports)


async def test_it_is_not_lost_while_the_plan_continues_as_new(
    plans: Kit, service: ServiceKit
) -> None:
    run = await plans.start(
        {"history_limit": 50, "phases": {"p": {"steps": {"ok": {"approval": True}}}}},
        context=service.context(),
    )
    await run.until_status(Status.WAITING)
    for number in range(60):
        await run.handle.signal("continue", {"reason": f"signal {number}"})
    await supersede(run)
    await ends_superseded(run, service)
    assert len((await run.log()).entries) == 60


async def test_a_complete_plan_is_complete(plans: Kit, service: ServiceKit) -> None:
    """It comes while the plan, complete, waits for the last answers."""
    run = await plans.start(
        {"phases": {"p": {"steps": {"ok": {"approval": True}}}}}, context=service.context()
    )
    await run.until_status(Status.WAITING)
    await run.handle.signal("force_complete", {})
    await supersede(run)
    result = await run.result()
    assert (result.status is Status.COMPLETE) is not result.superseded
    told = await service.until(lambda told: not told.reports[-1].open)
    assert told.reports[-1].superseded is result.superseded


# --- errors of the plan itself --------------------------------------------------------------------


async def test_a_plan_with_faults_works_on_and_does_not_end(
    plans: Kit, service: ServiceKit
) -> None:
    name = f"faulty-{uuid4()}"
    run = await plans.start(
        {"phases": {"p": {"steps": steps(name)}}},
        errors=["count: may not shrink"],
        context=service.context(),
    )
    await run.until(lambda view: statuses(view) == ["COMPLETE"])
    view = await run.until_status(Status.ERROR)
    assert view.errors == ("count: may not shrink",)
    assert (await run.explain()).explanations[0].text == "count: may not shrink"
    await service.until(lambda told: told.reports[-1].status is Status.ERROR)
    await run.handle.signal("faults", PlanFaults(errors=("cpus: none left",)))
    await run.until(lambda view: view.errors == ("cpus: none left",))
    await run.handle.signal("faults", PlanFaults())
    assert (await run.result()).status is Status.COMPLETE


async def test_force_complete_clears_faults(plans: Kit) -> None:
    run = await plans.start({"phases": {"p": {"steps": {"ok": {"approval": True}}}}})
    await run.until_status(Status.WAITING)
    await run.handle.signal("faults", PlanFaults(errors=("refused",)))
    view = await run.until_status(Status.ERROR)
    assert statuses(view) == ["WAITING"], "it works on"
    assert (await run.update(Verb.CONTINUE, "p", "ok")).changed
    await run.until(lambda view: statuses(view) == ["COMPLETE"])
    assert (await run.view()).status is Status.ERROR
    assert (await run.update(Verb.FORCE_COMPLETE)).changed
    assert (await run.result()).status is Status.COMPLETE
