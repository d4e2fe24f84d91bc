"""Standing plans on a real server: phases come and go, and the plan stays."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError

from temporal_plans.api.dialect import http_code
from temporal_plans.domain.plans.board import PhaseState
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import PhasePut, PlanRevision, Supersede
from workflows.plan_kit import Kit, Run, statuses, steps
from workflows.service_programs import ServiceKit, pool_of
from workflows.test_continue_as_new import runs_of


def phase(name: str, state: PhaseState | None = None, **works: Any) -> PhasePut:
    """A phase with these steps, as plan files write them."""
    spec: PhaseSpec = PlanSpec.model_validate(
        {"name": "p", "phases": {name: {"steps": works}}}
    ).phases[0]
    return PhasePut(spec=spec, state=state or PhaseState())


def work(name: str) -> dict[str, Any]:
    return steps(name)


async def standing_plan(plans: Kit, **more: Any) -> Run:
    return await plans.start({"standing": True, "strategy": "parallel"}, **more)


async def revise(run: Run, number: int, *put: PhasePut, drop: tuple[str, ...] = ()) -> None:
    await run.handle.signal("revise", PlanRevision(number=number, put=put, drop=drop))


def names(view: PlanView) -> list[str]:
    return [phase.name for phase in view.phases]


async def test_it_is_complete_without_phases_and_takes_up_what_it_is_given(plans: Kit) -> None:
    run, name = await standing_plan(plans), f"given-{uuid4()}"
    await run.until_status(Status.COMPLETE)
    await revise(run, 1, phase("a", **work(name)))
    view = await run.until(lambda view: names(view) == ["a"] and view.status is Status.COMPLETE)
    assert statuses(view) == ["COMPLETE"]
    assert plans.recorder.done.count(name) == 1
    described = await run.handle.describe()
    assert described.status is WorkflowExecutionStatus.RUNNING
    assert (await run.explain()).explanations[0].text == (
        "the plan is complete, and is ready for new phases"
    )
    await run.handle.terminate()


async def test_an_interrupt_holds_what_comes_later(plans: Kit) -> None:
    run, name = await standing_plan(plans), f"held-{uuid4()}"
    await run.until_status(Status.COMPLETE)
    assert http_code(await run.update(Verb.INTERRUPT)) == 200
    assert http_code(await run.update(Verb.INTERRUPT)) == 208
    assert (await run.view()).waiting == ("the plan is interrupted",)
    await revise(run, 1, phase("a", **work(name)))
    await run.until_status(Status.WAITING)
    assert name not in plans.recorder.begun
    assert http_code(await run.update(Verb.CONTINUE)) == 200
    await run.until_status(Status.COMPLETE)
    assert http_code(await run.update(Verb.INTERRUPT)) == 200  # and it may be lifted while complete
    assert (await run.update(Verb.CONTINUE)).changed
    assert http_code(await run.update(Verb.START)) == 200
    assert plans.recorder.done.count(name) == 1, "start repeats nothing that is over"
    assert http_code(await run.update(Verb.RESTART, "a", name)) == 200
    await run.until(lambda view: plans.recorder.done.count(name) == 2)
    await run.handle.terminate()


async def test_a_repeated_revision_is_ignored(plans: Kit) -> None:
    run = await standing_plan(plans)
    await revise(run, 3, phase("a", ok={"approval": "first"}))
    await run.until_status(Status.WAITING)
    await revise(run, 3, phase("b", ok={"approval": "again"}))
    await revise(run, 2, drop=("a",))
    await revise(run, 4, phase("c", ok={"approval": "next"}))
    view = await run.until(lambda view: "c" in names(view))
    assert names(view) == ["a", "c"]
    await run.handle.terminate()


async def test_a_phase_at_work_leaves_before_another_takes_its_place(
    plans: Kit, service: ServiceKit
) -> None:
    run, name = await standing_plan(plans, context=service.context()), f"new-{uuid4()}"
    await revise(run, 1, phase("a", ok={"approval": "old"}), phase("b", ok={"approval": "b"}))
    await run.until(lambda view: statuses(view, 1) == ["WAITING"])
    await revise(run, 2, phase("a", **work(name)), phase("c"), drop=("b",))
    view = await run.until(lambda view: view.status is Status.COMPLETE)
    assert [(phase.name, statuses(view, i)) for i, phase in enumerate(view.phases)] == [
        ("a", ["COMPLETE"])
    ], "c had nothing to do, and is over at once"
    told = await service.until(
        lambda told: (told.reports[-1].revision, told.reports[-1].incomplete) == (2, ())
    )
    assert any(set(report.incomplete) >= {"a", "b"} for report in told.reports)
    await run.handle.terminate()


@pytest.mark.engine(leave_timeout=timedelta(seconds=1))
async def test_what_cannot_be_left_is_cancelled(own_plans: Kit) -> None:
    run, stuck, name = await standing_plan(own_plans), f"stuck-{uuid4()}", f"after-{uuid4()}"
    own_plans.recorder.gates[stuck] = asyncio.Event()
    await revise(run, 1, phase("a", **work(stuck)))
    await run.until(lambda view: bool(view.phases) and statuses(view) == ["STARTING"])
    await revise(run, 2, phase("a", **work(name)))
    view = await run.until_status(Status.COMPLETE)
    assert [step.name for step in view.phases[0].steps] == [name]
    own_plans.recorder.gates.pop(stuck).set()
    await run.handle.terminate()


@pytest.mark.engine(retention_limit=2)
async def test_the_latest_that_are_over_stay(own_plans: Kit) -> None:
    run = await standing_plan(own_plans)
    first, second, third = (f"over-{i}-{uuid4()}" for i in range(3))
    await revise(run, 1, phase("waits", ok={"approval": "look"}), phase("1", **work(first)))
    await run.until(lambda view: [s.status for s in view.phases[-1].steps] == [Status.COMPLETE])
    await revise(run, 2, phase("2", **work(second)))
    await run.until(lambda view: names(view)[-1] == "2" and second in own_plans.recorder.done)
    await run.until(lambda view: view.phases[-1].status is Status.COMPLETE)
    await revise(run, 3, phase("3", **work(third)))
    await run.until(lambda view: names(view) == ["waits", "2", "3"])
    await run.until(lambda view: view.phases[0].steps[0].status is Status.WAITING)
    # The numbers of those that stay still mean them: this order reaches the first phase.
    assert (await run.update(Verb.CONTINUE, "waits", "ok")).changed
    await run.until(lambda view: view.status is Status.COMPLETE and len(view.phases) == 2)
    await run.handle.terminate()


@pytest.mark.engine(retention_time=timedelta(seconds=2))
async def test_what_is_over_drops_out_in_time(own_plans: Kit) -> None:
    run, first, second = await standing_plan(own_plans), f"first-{uuid4()}", f"second-{uuid4()}"
    await revise(run, 1, phase("waits", ok={"approval": "look"}), phase("over", **work(first)))
    await run.until(lambda view: names(view) == ["waits"])
    assert own_plans.recorder.done.count(first) == 1
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(Verb.RESTART, "over")
    assert "phase over not found" in str(refused.value.cause)
    await revise(run, 2, phase("over", **work(second)))
    await run.until(lambda view: second in own_plans.recorder.done and names(view) == ["waits"])
    assert (await run.update(Verb.CONTINUE, "waits", "ok")).changed
    await run.until(lambda view: not view.phases)
    await run.handle.terminate()


async def test_a_phase_that_cannot_run_says_why(plans: Kit) -> None:
    run = await standing_plan(plans)
    await revise(run, 1, phase("bad/name", ok={"approval": "never"}))
    view = await run.until_status(Status.ERROR)
    assert "a name must not contain '/'" in view.errors[0]
    await revise(run, 2, drop=("bad/name",))
    await run.until_status(Status.COMPLETE)
    await run.handle.terminate()


async def test_only_a_standing_plan_is_given_phases(plans: Kit) -> None:
    run = await plans.start({"phases": {"p": {"steps": {"ok": {"approval": True}}}}})
    await run.until_status(Status.WAITING)
    await revise(run, 1, phase("a", ok={"approval": "no"}))
    assert "only a standing plan" in (await run.log()).entries[-1].outcome.message
    assert names(await run.view()) == ["p"]
    await run.handle.terminate()


def _is_complete(name: str, view: PlanView) -> bool:
    return any(phase.name == name and phase.status is Status.COMPLETE for phase in view.phases)


async def test_it_lives_on_over_many_runs(plans: Kit, service: ServiceKit) -> None:
    run = await standing_plan(plans, history_limit=60, context=service.context())
    done = [f"many-{i}-{uuid4()}" for i in range(24)]
    await revise(run, 1, phase("waits", ok={"approval": "look"}))
    await run.until_status(Status.WAITING)
    for number, name in enumerate(done):
        await revise(run, number + 2, phase(f"phase-{number % 5}", **work(name)))
        if number % 6 == 5:
            await run.until(partial(_is_complete, f"phase-{number % 5}"))
    await run.until(lambda view: sum(p.status is Status.COMPLETE for p in view.phases) == 5)
    assert await runs_of(plans.client, run.handle.id) > 1
    assert all(plans.recorder.done.count(name) <= 1 for name in done)
    assert all(name in plans.recorder.done for name in done[-5:])
    view = await run.view()
    assert set(names(view)) == {"waits", *(f"phase-{i}" for i in range(5))}
    assert view.phases[0].steps[0].attempt == 1, "what waited was taken along"
    told = await service.until(
        lambda told: (
            (told.reports[-1].revision, told.reports[-1].incomplete) == (len(done) + 1, ("waits",))
        )
    )
    assert all(report.open for report in told.reports)
    assert (await run.update(Verb.CONTINUE, "waits", "ok")).changed
    await run.until_status(Status.COMPLETE)
    await run.handle.terminate()


async def test_it_ends_when_it_is_superseded(plans: Kit, service: ServiceKit) -> None:
    run = await standing_plan(plans, context=service.context())
    await run.until_status(Status.COMPLETE)
    await run.handle.signal("supersede", Supersede(why="uninstall"))
    assert (await run.result()).superseded
    told = await service.until(lambda told: not told.reports[-1].open)
    assert told.reports[-1].superseded


async def test_a_delayed_step_waits_without_its_asset(plans: Kit, service: ServiceKit) -> None:
    """What begins delayed holds nobody else up, and asks for its pod when its time has come."""
    pool = await pool_of(plans.client, plans.queue)
    run = await standing_plan(plans, context=service.context("recovery", pool=pool))
    until = datetime.now(UTC) + timedelta(seconds=8)
    state = StepState(status=Status.DELAYED, delayed_until=until, reason="it failed")
    work = {"work": {"kind": "pod", "pod": "web", "index": 0, "tasks": ["server"]}}
    work["work"]["recovery"] = "transient"
    put = phase("web-0:[server]", PhaseState(steps={0: state}), **{"web-0:[server]": work})
    await revise(run, 1, put)
    view = await run.until_status(Status.DELAYED)
    assert (await run.explain()).explanations[0].until == until
    assert not (await service.told()).asked_for
    told = await service.until(lambda told: bool(told.leases.held))
    assert datetime.now(UTC) >= until
    assert [lease.pod for lease in told.leases.held] == ["web"]
    view = await run.until(lambda view: "no agent" in view.phases[0].steps[0].message)
    assert view.phases[0].steps[0].status is Status.PREPARED
    await revise(run, 2, drop=("web-0:[server]",))
    await service.until(lambda told: not told.leases.held)
    await run.until_status(Status.COMPLETE)
    await run.handle.terminate()
