"""Plans on a real server: trees, commands, failures, in both modes of running steps."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.service import RPCError

from pauses import PATIENCE, until
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plans import PLAN_RUN, PLAN_STARTER, PlanInput
from workflows.plan_kit import Kit, Run, statuses, steps

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


@MODES
async def test_phases_and_steps_run_in_their_order(plans: Kit, mode: str) -> None:
    names = [f"{mode}-{n}" for n in ("a", "b", "c", "d")]
    run = await plans.start(
        {
            "steps": mode,
            "phases": {"one": {"steps": steps(*names[:2])}, "two": {"steps": steps(*names[2:])}},
        }
    )
    result = await run.result()
    assert result.status is Status.COMPLETE
    assert [n for n in plans.recorder.done if n.startswith(mode)] == names
    assert [phase.status for phase in result.view.phases] == [Status.COMPLETE] * 2


@MODES
async def test_a_failed_step_reads_error_until_it_is_restarted(plans: Kit, mode: str) -> None:
    name = f"flaky-{mode}"
    plans.recorder.failures[name] = 1
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": steps(name, "after")}}})
    view = await run.until_status(Status.ERROR)
    assert statuses(view) == ["ERROR", "PENDING"]
    assert view.errors == (f"p: {name}: Broken: {name} is broken",)
    outcome = await run.update(Verb.RESTART, "p", name, reason="mended")
    assert http_code(outcome) == 200
    assert (await run.result()).status is Status.COMPLETE


@MODES
async def test_a_plan_begins_anew_right_after_it_was_terminated(plans: Kit, mode: str) -> None:
    """What ran for it is being cancelled, and has the ids of its phases and steps for a moment."""
    name = f"held-{mode}"
    plans.recorder.gates[name] = asyncio.Event()
    plan = {"steps": mode, "phases": {"p": {"steps": steps(name)}}}
    run = await plans.start(plan)
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    await run.handle.terminate()
    again = await plans.start(plan, id=run.handle.id)
    plans.recorder.gates.pop(name).set()
    assert (await again.result()).status is Status.COMPLETE


@pytest.mark.parametrize("held", ["p", "p/s"])
@pytest.mark.parametrize("verb", [Verb.INTERRUPT, Verb.STOP, Verb.FORCE_COMPLETE])
async def test_a_command_counts_for_what_waits_to_begin(plans: Kit, verb: Verb, held: str) -> None:
    """The id of the phase, or of its step, is not free yet."""
    name = f"waits-{verb}-{held}"
    plan = f"plan-{uuid4()}"
    idle = await plans.client.start_workflow(
        "Idle", id=f"{plan}/{held}", task_queue=f"nobody-{uuid4()}"
    )
    work = {"activity": {"type": "work", "input": name}}
    run = await plans.start({"phases": {"p": {"steps": {"s": work}}}}, id=plan)
    await until(lambda: failed_starts(plans, run))
    outcome = await run.update(verb)
    assert http_code(outcome) == 200
    if held == "p/s":  # a step that begins before its phase hears of the command is cancelled
        await until(lambda: phase_has_heard(plans, run))
    await idle.terminate()
    if verb is not Verb.FORCE_COMPLETE:
        await asyncio.sleep(1.0)  # longer than it would have waited
        assert name not in plans.recorder.begun
        assert http_code(await run.update(Verb.CONTINUE)) == 200
    assert (await run.result()).status is Status.COMPLETE
    assert (name in plans.recorder.begun) is (verb is not Verb.FORCE_COMPLETE)


async def phase_has_heard(plans: Kit, run: Run) -> bool:
    """Whether the phase has worked on the last command that the plan sent it."""
    phase = plans.client.get_workflow_handle(f"{run.handle.id}/p")
    events = (await phase.fetch_history()).events
    told = [event.HasField("workflow_execution_signaled_event_attributes") for event in events]
    worked = [event.HasField("workflow_task_completed_event_attributes") for event in events]
    return any(told) and any(worked[len(told) - told[::-1].index(True) :])


async def failed_starts(plans: Kit, run: Run) -> int:
    """How often a child of the plan, or of its phase, could not be started."""
    failed = 0
    for workflow_id in (run.handle.id, f"{run.handle.id}/p"):
        with suppress(RPCError):
            history = await plans.client.get_workflow_handle(workflow_id).fetch_history()
            failed += sum(
                event.HasField("start_child_workflow_execution_failed_event_attributes")
                for event in history.events
            )
    return failed


@MODES
async def test_force_complete_of_a_step_at_work_lets_the_next_begin(plans: Kit, mode: str) -> None:
    name = f"stuck-{mode}"
    plans.recorder.gates[name] = asyncio.Event()
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": steps(name, "next")}}})
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    assert http_code(await run.update(Verb.FORCE_COMPLETE, "p", name, reason="enough")) == 200
    result = await run.result()
    forced = [step.forced for step in result.view.phases[0].steps]
    assert forced == [True, False]
    plans.recorder.gates.pop(name).set()


@MODES
async def test_approval_waits_for_continue(plans: Kit, mode: str) -> None:
    approval = {"approval": "look at it"}
    run = await plans.start(
        {"steps": mode, "phases": {"p": {"steps": {"ok": approval, **steps("z")}}}}
    )
    view = await run.until_status(Status.WAITING)
    assert statuses(view) == ["WAITING", "PENDING"]
    nothing = await run.update(Verb.CONTINUE)
    assert (http_code(nothing), nothing.changed) == (200, False)
    assert nothing.waiting == ("phase p waits for approval of ok",)
    assert (await run.update(Verb.CONTINUE, "p", "ok")).changed
    assert (await run.result()).status is Status.COMPLETE


@MODES
async def test_canary_gates(plans: Kit, mode: str) -> None:
    names = [f"canary-{mode}-{i}" for i in range(4)]
    run = await plans.start(
        {"steps": mode, "phases": {"p": {"strategy": "parallel-canary", "steps": steps(*names)}}}
    )
    view = await run.until_status(Status.WAITING)
    assert statuses(view) == ["WAITING", "WAITING", "PENDING", "PENDING"]
    await run.update(Verb.CONTINUE, "p")
    view = await run.until(lambda view: statuses(view)[0] == "COMPLETE")
    assert (view.status, statuses(view)[1:]) == (Status.WAITING, ["WAITING", "PENDING", "PENDING"])
    await run.update(Verb.CONTINUE, "p")
    assert (await run.result()).status is Status.COMPLETE


@MODES
async def test_interrupted_plan_begins_nothing_new(plans: Kit, mode: str) -> None:
    first, second = f"first-{mode}", f"second-{mode}"
    plans.recorder.gates[first] = asyncio.Event()
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": steps(first, second)}}})
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    assert http_code(await run.update(Verb.INTERRUPT)) == 200
    assert http_code(await run.update(Verb.INTERRUPT)) == 208
    plans.recorder.gates.pop(first).set()
    view = await run.until(lambda view: statuses(view)[0] == "COMPLETE")
    assert (view.status, statuses(view)[1]) == (Status.WAITING, "PENDING")
    assert second not in plans.recorder.begun
    assert http_code(await run.update(Verb.CONTINUE)) == 200
    assert (await run.result()).status is Status.COMPLETE


async def test_started_with_parameters_when_somebody_says_so(plans: Kit) -> None:
    run = await plans.start(
        {
            "interrupted": True,
            "parameters": {"NAME": {"required": True, "pattern": "[a-z]+"}},
            "phases": {"p": {"steps": {"s": {"activity": {"type": "work", "input": "${NAME}"}}}}},
        }
    )
    assert (await run.view()).status is Status.WAITING
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(Verb.START, parameters={"NAME": "1"})
    assert "NAME" in str(refused.value.cause)
    assert http_code(await run.update(Verb.START, parameters={"NAME": "given"})) == 200
    assert (await run.result()).status is Status.COMPLETE
    assert "given" in plans.recorder.done


async def test_stop_resets_the_steps_and_waits(plans: Kit) -> None:
    run = await plans.start(
        {"phases": {"p": {"steps": {**steps("stopped"), "ok": {"approval": True}}}}}
    )
    await run.until(lambda view: statuses(view) == ["COMPLETE", "WAITING"])
    assert http_code(await run.update(Verb.STOP)) == 200
    view = await run.view()
    assert (view.status, statuses(view)) == (Status.WAITING, ["PENDING", "PENDING"])
    await run.update(Verb.START)
    await run.until(lambda view: statuses(view) == ["COMPLETE", "WAITING"])
    assert plans.recorder.done.count("stopped") == 2
    await run.update(Verb.FORCE_COMPLETE)
    assert (await run.result()).status is Status.COMPLETE


async def test_a_mistyped_phase_is_refused_with_the_right_name(plans: Kit) -> None:
    run = await plans.start({"phases": {"approve": {"steps": {"ok": {"approval": True}}}}})
    before = (await run.handle.describe()).history_length
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await run.update(Verb.RESTART, "aprove")
    assert "phase aprove not found; did you mean approve?" in str(refused.value.cause)
    await run.until_status(Status.WAITING)
    assert before <= (await run.handle.describe()).history_length
    assert (await run.log()).entries == ()
    await run.handle.terminate()


@pytest.mark.parametrize(
    ("signal", "input", "said"),
    [
        pytest.param("restart", {"fase": "p"}, "fase", id="unknown key"),
        pytest.param("restart", ["p"], "must be a mapping", id="not an object"),
        pytest.param("restrt", {}, "did you mean restart", id="unknown name"),
        pytest.param("force_complete", {"phase": "q"}, "phase q not found", id="unknown phase"),
    ],
)
async def test_a_bad_signal_is_in_the_log_and_the_plan_lives(
    plans: Kit, signal: str, input: object, said: str
) -> None:
    run = await plans.start({"phases": {"p": {"steps": {"ok": {"approval": True}}}}})
    await run.until_status(Status.WAITING)
    await run.handle.signal(signal, input)
    entry = (await run.log()).entries[-1]
    assert (entry.verb, entry.via) == (signal, "signal")
    assert said in entry.outcome.message
    await run.update(Verb.CONTINUE, "p")
    assert (await run.result()).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        pytest.param({"phases": {"p": {"strategy": "serail"}}}, "serial", id="strategy"),
        pytest.param({"phases": {"p": {"steps": {"s": {"custom": "x"}}}}}, "x", id="step kind"),
        pytest.param(
            {"parameters": {"A": {"required": True}}, "phases": {"p": {}}}, "A", id="parameter"
        ),
    ],
)
async def test_a_plan_that_cannot_run_fails_at_once(
    plans: Kit, plan: dict[str, object], said: str
) -> None:
    run = await plans.start(plan)
    with pytest.raises(WorkflowFailureError) as failed:
        await run.result()
    assert said in str(failed.value.cause)


async def test_malformed_input_fails_at_once(plans: Kit) -> None:
    handle = await plans.client.start_workflow(
        "Plan", {"name": "x", "fases": []}, id="malformed", task_queue=plans.queue
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(handle.result(), PATIENCE)
    assert "fases" in str(failed.value.cause)


async def test_an_unknown_workflow_type_fails_at_once(plans: Kit) -> None:
    handle = await plans.client.start_workflow("Paln", id="typo", task_queue=plans.queue)
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(handle.result(), PATIENCE)
    assert "did you mean Plan" in str(failed.value.cause)


@MODES
async def test_a_cancelled_plan_cancels_what_runs(plans: Kit, mode: str) -> None:
    name = f"cancelled-{mode}"
    plans.recorder.gates[name] = asyncio.Event()
    run = await plans.start({"steps": mode, "phases": {"p": {"steps": steps(name)}}})
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    await run.handle.cancel()
    with pytest.raises(WorkflowFailureError) as ended:
        await run.result()
    assert "cancelled" in str(ended.value.cause).lower()
    plans.recorder.gates.pop(name).set()


async def test_a_plan_that_has_ended_is_begun_anew_where_it_ended(plans: Kit) -> None:
    plan = {"phases": {"p": {"steps": steps("anew-a", "anew-b")}}}
    ended = await (await plans.start(plan)).result()
    again = {"verb": "restart", "command": {"phase": "p", "step": "anew-b", "by": "me"}}
    run = await plans.start(plan, state=ended.state, first=[again])
    assert (await run.result()).status is Status.COMPLETE
    assert (plans.recorder.done.count("anew-a"), plans.recorder.done.count("anew-b")) == (1, 2)
    [entry] = (await run.log()).entries
    assert (entry.verb, entry.step, entry.by, entry.via) == ("restart", "anew-b", "me", "start")


async def test_names_that_make_ids_too_long_are_refused(plans: Kit) -> None:
    run = await plans.start({"phases": {"p" * 200: {"steps": steps("s" * 200)}}}, name="n" * 200)
    assert (await run.result()).status is Status.COMPLETE
    input = {"name": "x", "phases": {"p" * 200: {"steps": {"s" * 200: {"approval": True}}}}}
    handle = await plans.client.start_workflow("Plan", input, id="i" * 600, task_queue=plans.queue)
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(handle.result(), PATIENCE)
    assert "use shorter names" in str(failed.value.cause)


async def test_messages_that_were_meant_for_a_child_that_has_ended_count_for_nothing(
    plans: Kit,
) -> None:
    """They name a workflow, not its run: they reach the child that was started in its place."""
    name = "meant-for-another"
    plans.recorder.gates[name] = asyncio.Event()
    run = await plans.start(
        {"phases": {"p": {"steps": {**steps(name, "z"), "ok": {"approval": True}}}}}
    )
    await run.until(lambda view: statuses(view)[0] == "STARTING")
    phase = plans.client.get_workflow_handle(f"{run.handle.id}/p")
    step = plans.client.get_workflow_handle(f"{run.handle.id}/p/{name}")
    held_back = {"number": 1, "token": "of another", "permitted": False, "leave": True}
    await phase.signal("orders", held_back)
    await step.signal("order", {**held_back, "state": {"status": "COMPLETE"}})
    lie = {"token": "of another", "index": 1, "state": {"status": "COMPLETE"}}
    await phase.signal("step_changed", lie)
    told = {"phase": 0, "token": "of another", "steps": {"1": {"status": "COMPLETE"}}}
    await run.handle.signal("phase_changed", told)
    await run.update(Verb.CONTINUE)
    assert statuses(await run.view()) == ["STARTING", "PENDING", "PENDING"]
    plans.recorder.gates.pop(name).set()
    await run.until(lambda view: statuses(view) == ["COMPLETE", "COMPLETE", "WAITING"])
    await run.update(Verb.CONTINUE, "p")
    assert (await run.result()).status is Status.COMPLETE
    assert plans.recorder.done.count("z") >= 1


CONTEXT = {"owner": "shop", "workflow_id": "service/shop", "plan": "deploy"}


@pytest.mark.parametrize(
    ("engine", "id", "memo"),
    [
        pytest.param({"context": CONTEXT}, "shop/deploy", None, id="context"),
        pytest.param({"standing": True}, "", None, id="without-context"),
        pytest.param({"context": CONTEXT}, "mine", {PLAN_STARTER: "", PLAN_RUN: 0}, id="copied"),
        pytest.param(
            {"context": {**CONTEXT, "run": 7}},
            "shop/deploy",
            {PLAN_STARTER: "", PLAN_RUN: 6},
            id="another-run",
        ),
    ],
)
async def test_what_is_the_engines_to_say_is_refused_from_a_user(
    plans: Kit, engine: dict[str, Any], id: str, memo: dict[str, Any] | None
) -> None:
    input = PlanInput.model_validate(
        {"name": "p", "engine": engine, "phases": {"a": {"steps": steps("x")}}}
    )
    handle = await plans.client.start_workflow(
        "Plan", input, id=id or f"plan-{uuid4()}", task_queue=plans.queue, memo=memo
    )
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert "engine: is set by the engine" in str(failed.value.cause)
