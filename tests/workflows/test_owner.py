"""What every owner of plans does, by the smallest one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from pauses import until
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.owners import StartPlan
from temporal_plans.messages.plans import CommandLog
from temporal_plans.worker.plugin import PlansPlugin
from workflows.owner_programs import Chores, ChoresInput
from workflows.plan_kit import Kit, kit, steps


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    address = env.client.service_client.config.target_host
    async with kit(address, workflows=[Chores]) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def own_plans(env: WorkflowEnvironment, engine: PlansPlugin) -> AsyncIterator[Kit]:
    address = env.client.service_client.config.target_host
    async with kit(address, engine, workflows=[Chores]) as made:
        yield made


def chore(name: str, *done: str, **more: Any) -> PlanSpec:
    phases = {"p": {"steps": steps(*(done or (name,)))}}
    return PlanSpec.model_validate({"name": name, "phases": phases, **more})


class List:
    """One list of chores under test."""

    def __init__(self, handle: WorkflowHandle[Chores, str]) -> None:
        self.handle = handle
        self.name = handle.id.removeprefix("chores/")

    async def start(self, plan: str, **more: Any) -> Outcome:
        outcome: Outcome = await self.handle.execute_update(
            "start_plan", StartPlan(plan=plan, **more), result_type=Outcome
        )
        return outcome

    async def statuses(self, plan: str) -> list[tuple[int, Status]]:
        history: RunHistory = await self.handle.query("runs", result_type=RunHistory)
        return [(run.run, run.status) for run in history.runs if run.plan == plan]

    async def until_runs(self, plan: str, *runs: tuple[int, Status]) -> None:
        async def reached() -> bool:
            return await self.statuses(plan) == list(runs)

        await until(reached)


Begin = Callable[..., Awaitable[List]]


async def begun_by(plans: Kit, *chores: PlanSpec, **more: Any) -> List:
    name = f"list-{uuid4()}"
    handle = await plans.client.start_workflow(
        Chores.run,
        ChoresInput(name=name, plans=chores, **more),
        id=f"chores/{name}",
        task_queue=plans.queue,
    )
    return List(handle)


@pytest.fixture
def begin(plans: Kit) -> Begin:
    return partial(begun_by, plans)


async def test_it_runs_its_plans_and_again_when_it_is_asked(begin: Begin, plans: Kit) -> None:
    name = f"wash-{uuid4()}"
    chores = await begin(chore("wash", name))
    await chores.until_runs("wash", (1, Status.COMPLETE))
    assert (await chores.start("wash", by="ann")).result is Result.DONE
    await chores.until_runs("wash", (1, Status.COMPLETE), (2, Status.COMPLETE))
    assert plans.recorder.done.count(name) == 2
    log: CommandLog = await chores.handle.query("log", result_type=CommandLog)
    assert [(entry.verb, entry.by) for entry in log.entries] == [("start wash", "ann")]


async def test_a_plan_of_an_owner_may_be_without_phases_or_steps(begin: Begin, plans: Kit) -> None:
    hollow = PlanSpec.model_validate({"name": "hollow", "phases": {"p": {}, "q": {"steps": {}}}})
    chores = await begin(PlanSpec(name="empty"), hollow)
    await chores.until_runs("empty", (1, Status.COMPLETE))
    await chores.until_runs("hollow", (1, Status.COMPLETE))
    for name in ("empty", "hollow"):  # it was not refused
        await plans.client.get_workflow_handle(f"{chores.name}/{name}").result()


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        pytest.param({"plan": "wosh"}, "not-found", "did you mean wash?", id="mistyped"),
        pytest.param({"plan": "wash", "phase": "q"}, "not-found", "use one of: p", id="phase"),
        pytest.param({"plan": "wash", "parameters": {"HOT": "1"}}, "invalid", "HOT", id="argument"),
    ],
)
async def test_what_may_not_start_is_refused_with_a_code_and_the_right_names(
    begin: Begin, request_: dict[str, Any], code: str, text: str
) -> None:
    chores = await begin(chore("wash", f"wash-{uuid4()}", parameters={"COLD": "1"}))
    await chores.until_runs("wash", (1, Status.COMPLETE))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await chores.start(**request_)
    cause = refused.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.details[0]["code"] == code
    assert text in cause.message


@pytest.mark.engine(check_interval=timedelta(seconds=0.2))
async def test_a_plan_that_was_terminated_is_found_and_may_start_again(own_plans: Kit) -> None:
    plans, name = own_plans, f"stuck-{uuid4()}"
    plans.recorder.gates[name] = asyncio.Event()
    chores = await begun_by(plans, chore("wash", name))

    async def begun() -> bool:
        return name in plans.recorder.begun

    await until(begun)
    await plans.client.get_workflow_handle(f"{chores.name}/wash").terminate()

    async def ended() -> bool:
        history: RunHistory = await chores.handle.query("runs", result_type=RunHistory)
        return history.runs[0].ended is not None

    await until(ended)
    plans.recorder.gates.pop(name).set()
    assert (await chores.start("wash")).result is Result.DONE

    async def again() -> bool:
        return (await chores.statuses("wash"))[-1] == (2, Status.COMPLETE)

    await until(again)


async def test_it_is_uninstalled_by_its_own_plan_and_takes_no_start_meanwhile(
    begin: Begin, plans: Kit
) -> None:
    name = f"tidy-{uuid4()}"
    plans.recorder.gates[name] = asyncio.Event()
    chores = await begin(chore("wash", f"wash-{uuid4()}"), chore("clear-up", name))
    await chores.until_runs("wash", (1, Status.COMPLETE))
    gone: Outcome = await chores.handle.execute_update("uninstall", result_type=Outcome)
    assert gone.result is Result.DONE
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await chores.start("wash")
    assert "is being uninstalled" in str(refused.value.cause)
    again: Outcome = await chores.handle.execute_update("uninstall", result_type=Outcome)
    assert again.result is Result.ALREADY
    plans.recorder.gates.pop(name).set()
    assert await chores.handle.result() == "cleared up"


async def test_it_continues_as_new_and_forgets_nothing(begin: Begin) -> None:
    chores = await begin(chore("wash", f"wash-{uuid4()}"), history_limit=50)
    first = (await chores.handle.describe()).run_id
    runs = 8
    for number in range(1, runs + 1):
        expected = [(one, Status.COMPLETE) for one in range(1, number + 1)]
        await chores.until_runs("wash", *expected)
        if number < runs:
            await chores.start("wash", reason=str(number))
    assert (await chores.handle.describe()).run_id != first
    log: CommandLog = await chores.handle.query("log", result_type=CommandLog)
    assert [entry.reason for entry in log.entries] == [str(one) for one in range(1, runs)]
