"""What developers bring: strategies and step kinds, good and bad, through the public test kit."""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio import activity, workflow
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from temporal_plans import build
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import Element
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import Code
from temporal_plans.testing import NotReached, PlanEnvironment
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.registry import StepKind
from temporal_plans.workflows.plans.step_context import StepContext

MODES = pytest.mark.parametrize("mode", ["child", "inline"])


class Shelf:
    """An activity whose outcome the test decides."""

    def __init__(self) -> None:
        self.items: set[str] = set()

    @activity.defn
    async def on_shelf(self, item: str) -> bool:
        return item in self.items

    @activity.defn
    def noop(self) -> None:
        return None


async def fetch(step: StepContext) -> str:
    """Needs its item on the shelf; says what it does, and stumbles over an item that is no text."""
    step.say(f"looks for {step.input}")
    wanted = step.input.strip()
    if not await workflow.execute_activity(
        "on_shelf", wanted, result_type=bool, start_to_close_timeout=timedelta(seconds=10)
    ):
        raise ApplicationError(f"no {wanted} on the shelf", type="Missing")
    return f"fetched {wanted}"


def backwards(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    left = [e for e in elements if not e.complete]
    return [e for e in left[-1:] if e.eligible]


def nobody(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    return []


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return Shelf()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment, shelf: Shelf) -> AsyncIterator[PlanEnvironment]:
    async with PlanEnvironment(
        client=env.client,
        activities=[shelf.on_shelf, shelf.noop],
        strategies={"backwards": backwards, "nobody": nobody},
        step_kinds={"fetch": fetch},
    ) as made:
        yield made


def _noops(count: int) -> list[build.Step]:
    return [build.activity("noop") for _ in range(count)]


# --- strategies ---------------------------------------------------------------------------------


@MODES
async def test_an_own_strategy_orders_steps_and_phases(plans: PlanEnvironment, mode: Any) -> None:
    phases = [build.phase(name, *_noops(3), strategy="backwards") for name in ("a", "b")]
    run = await plans.run(build.plan("p", *phases, strategy="backwards", steps=mode))
    assert run.complete
    moments = [step.started for phase in run.view.phases for step in phase.steps]
    assert None not in moments
    assert moments == sorted(moments, key=str, reverse=True)


async def test_a_strategy_that_picks_nobody_reads_error(plans: PlanEnvironment) -> None:
    plan = build.plan("p", build.phase("a", *_noops(1), strategy="nobody"))
    running = await plans.start(plan)
    await running.until(Status.ERROR, phase="a")
    assert (await running.force_complete(phase="a")).changed
    assert (await running.at_rest()).complete


def raises(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    raise KeyError("zone")


def answers_nothing(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Any:
    return None


def answers_names(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Any:
    return [element.name for element in elements]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        pytest.param(raises, "KeyError: 'zone'", id="raises"),
        pytest.param(answers_nothing, "TypeError: ", id="answers-nothing"),
        pytest.param(answers_names, "TypeError: ", id="answers-names"),
    ],
)
async def test_a_strategy_that_fails_is_told_and_can_be_passed_over(
    env: WorkflowEnvironment, shelf: Shelf, bad: Any, told: str
) -> None:
    """Nothing that a developer's strategy does may wedge a plan."""
    plan = build.plan(
        "p", build.phase("a", *_noops(2), strategy="bad"), build.phase("b", *_noops(1))
    )
    async with PlanEnvironment(
        client=env.client, activities=[shelf.noop], strategies={"bad": bad}
    ) as own:
        running = await own.start(plan)
        [error, *_] = (await running.until(Status.ERROR)).errors
        assert f"strategy bad failed: {told}" in error
        assert (await running.force_complete(phase="a", reason="done by hand")).changed
        assert (await running.ended()).complete


# --- step kinds ---------------------------------------------------------------------------------


@MODES
async def test_a_step_kind_that_fails_is_told_and_can_be_restarted(
    plans: PlanEnvironment, shelf: Shelf, mode: Any
) -> None:
    item = f"milk-{mode}"
    plan = build.plan(
        "p",
        build.phase("a", build.custom("fetch", "${ITEM}"), build.activity("noop")),
        parameters=[build.parameter("ITEM", required=True)],
        steps=mode,
    )
    running = await plans.start(plan, {"ITEM": item})
    view = (await running.at_rest()).view
    assert view.errors == (f"a: fetch: Missing: no {item} on the shelf",)
    assert [step.status for step in view.phases[0].steps] == [Status.ERROR, Status.PENDING]
    shelf.items.add(item)
    assert (await running.restart(phase="a", step="fetch", reason="bought some")).changed
    assert (await running.at_rest()).complete


@MODES
async def test_a_step_kind_that_stumbles_fails_its_step_and_nothing_else(
    plans: PlanEnvironment, mode: Any
) -> None:
    """A plain exception in workflow code would make Temporal try the workflow task for ever."""
    phase = build.phase("a", build.custom("fetch", 3), build.activity("noop"), strategy="parallel")
    running = await plans.start(build.plan("p", phase, steps=mode))
    await running.until(Status.COMPLETE, phase="a", step="noop")
    view = await running.until(Status.ERROR, phase="a", step="fetch")
    assert view.errors == ("a: fetch: AttributeError: 'int' object has no attribute 'strip'",)
    await running.restart(phase="a", step="fetch")
    await running.until(Status.ERROR, phase="a", step="fetch")
    assert (await running.force_complete(phase="a", step="fetch")).changed
    assert (await running.at_rest()).complete


# --- names that the worker does not know --------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        pytest.param(
            build.phase("a", build.custom("fecth")),
            'phases.a.steps.fecth.custom.type: unknown kind of step (found "fecth"); '
            "did you mean fetch?",
            id="step-kind",
        ),
        pytest.param(
            build.phase("a", build.approval(), strategy="backward"),
            'phases.a.strategy: unknown strategy (found "backward"); did you mean backwards?',
            id="strategy",
        ),
    ],
)
async def test_unknown_names_refuse_the_plan_and_name_the_known(
    plans: PlanEnvironment, phase: build.Phase, said: str
) -> None:
    running = await plans.start(build.plan("p", phase))
    with pytest.raises(WorkflowFailureError) as refused:
        await plans.client.get_workflow_handle(running.id).result()
    cause = refused.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "InvalidPlan"
    assert said in cause.message
    refusal = refusal_in(cause)
    assert refusal is not None
    assert (refusal.code, said in str(refusal)) == (Code.INVALID, True)


@pytest.mark.parametrize("kinds", [{"fetch": fetch}, {"fecth": fetch}], ids=["same", "mended"])
async def test_a_refused_plan_can_be_looked_at(
    env: WorkflowEnvironment, kinds: dict[str, StepKind], caplog: pytest.LogCaptureFixture
) -> None:
    """By a worker that replays it, whatever names that worker knows by then."""
    async with PlanEnvironment(client=env.client, step_kinds={"fetch": fetch}) as own:
        running = await own.start(build.plan("p", build.phase("a", build.custom("fecth"))))
        with pytest.raises(WorkflowFailureError):
            await own.client.get_workflow_handle(running.id).result()
        await own.restart_worker(step_kinds=kinds)
        with caplog.at_level(logging.WARNING):
            run = await running.look()
            [entry] = (await own.plans.log(running.id)).entries
        assert (run.ended, "fecth" in run.why) == (Ended.FAILED, True)
        assert (entry.verb, entry.outcome.result) == ("start", Result.REFUSED)
    assert "Nondeterminism" not in caplog.text


async def test_tracebacks_of_step_kinds_and_strategies(
    env: WorkflowEnvironment, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the worker's log, and in explanations: files, lines and functions."""
    phases = [
        build.phase("a", build.custom("fetch", 3)),
        build.phase("b", *_noops(1), strategy="raises"),
    ]
    async with PlanEnvironment(
        client=env.client, strategies={"raises": raises}, step_kinds={"fetch": fetch}
    ) as own:
        with caplog.at_level(logging.ERROR):
            running = await own.start(build.plan("p", *phases, strategy="parallel"))
            for phase in ("a", "b"):
                await running.until(Status.ERROR, phase=phase)
            explained = (await own.plans.explain(running.id)).explanations
        assert ["in fetch" in one.trace for one in explained] == [True, False]
        assert ["in raises" in one.trace for one in explained] == [False, True]
        for text in ("step.input.strip()", 'raise KeyError("zone")'):
            assert text in caplog.text


# --- what the plugin refuses --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("registered", "said"),
    [
        pytest.param(
            {"strategies": {"serial": backwards}}, "serial is built in", id="strategy-built-in"
        ),
        pytest.param(
            {"strategies": {"canary": backwards}}, "canary is built in", id="canary-built-in"
        ),
        pytest.param(
            {"strategies": {"x": 3}},
            r"strategies: x is not a function \(found 3\)",
            id="strategy-no-function",
        ),
        pytest.param(
            {"step_kinds": {"x": "y"}},
            r"step_kinds: x is not a function \(found 'y'\)",
            id="kind-no-function",
        ),
    ],
)
def test_what_can_not_be_registered(registered: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PlansPlugin(**registered)


# --- the test kit itself ------------------------------------------------------------------------


async def test_what_does_not_come_is_told_with_the_tree(plans: PlanEnvironment) -> None:
    running = await plans.start(build.plan("p", build.phase("a", build.approval("look?"))))
    await running.until(Status.WAITING)
    with pytest.raises(NotReached) as missed:
        await running.until(Status.COMPLETE, phase="a", timeout=timedelta(seconds=0.1))
    assert f"waited for COMPLETE of {running.id}/a" in str(missed.value)
    assert "    approval WAITING: waits for approval: look?" in str(missed.value)


async def test_names_that_are_not_there_are_told_at_once(plans: PlanEnvironment) -> None:
    running = await plans.start(build.plan("p", build.phase("alpha", build.approval())))
    with pytest.raises(LookupError, match=r"no phase 'alhpa'; did you mean alpha\?"):
        await running.until(Status.COMPLETE, phase="alhpa")


async def test_a_plan_that_is_stopped_is_not_waited_for(plans: PlanEnvironment) -> None:
    running = await plans.start(build.plan("p", build.phase("a", build.approval())))
    await running.until(Status.WAITING)
    await plans.client.get_workflow_handle(running.id).terminate()
    with pytest.raises(NotReached, match="its workflow terminated"):
        await running.until(Status.COMPLETE)


async def test_without_a_client_it_brings_its_own_server(tmp_path: Path) -> None:
    """Also: plans from files, and activities of other task queues."""

    @activity.defn(name="note")
    def note(text: str) -> None:
        (tmp_path / "note").write_text(text)

    file = tmp_path / "plan.yml"
    file.write_text(
        "name: p\n"
        "phases: {a: {steps: {s: {activity: {type: note, task-queue: notes, input: '${X}'}}}}}\n"
    )
    async with PlanEnvironment(task_queues={"notes": [note]}, max_cached_workflows=0) as own:
        run = await own.run(file, {"X": "kept"})
    assert run.complete
    assert (tmp_path / "note").read_text() == "kept"


async def test_a_plan_goes_on_after_its_worker_was_restarted(
    env: WorkflowEnvironment, shelf: Shelf
) -> None:
    plan = build.plan("p", build.phase("a", build.approval(), *_noops(1), strategy="backwards"))
    async with PlanEnvironment(
        client=env.client, activities=[shelf.noop], strategies={"backwards": backwards}
    ) as own:
        running = await own.start(plan)
        await running.until(Status.WAITING)
        await own.restart_worker(strategies={"backwards": backwards})
        await running.until(Status.COMPLETE, phase="a", step="noop")
        await running.proceed(phase="a", step="approval")
        assert (await running.ended()).complete
