"""Plans begun by the clock, on a real server: the schedules, and the workflow that they start."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import CancelledError, FailureError
from temporalio.testing import WorkflowEnvironment

from pauses import PATIENCE
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.activities.owners import plans
from temporal_plans.activities.owners.plans import PlanActivities
from temporal_plans.activities.owners.scheduled import ScheduledActivities, ScheduledIntervals
from temporal_plans.client.errors import Refused, ScheduleNotFound
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.schedules import Overlap, ScheduleView, Timetable
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.owners import PlanStart
from temporal_plans.messages.plans import PlanInput
from temporal_plans.messages.schedules import ScheduledPlan, ScheduledResult, ScheduledStart
from temporal_plans.messages.services import ServiceInput
from temporal_plans.worker.plugin import ActivityIntervals, PlansPlugin
from temporal_plans.workflows.mechanics.settings import EngineSettings
from workflows.plan_kit import Kit, kit, steps

NIGHTLY = Timetable(cron=("0 3 * * *",), time_zone="Europe/Oslo")

POD = PodSpec(
    type="idle",
    count=0,
    resource_sets=(ResourceSet(id="r", cpus=0.1, memory=32),),
    tasks=(TaskSpec(name="server", goal=Goal.RUNNING, cmd="sleep 1", resource_set="r"),),
)


class Clock:
    """A service whose plan ``backup`` runs activities, and the verbs about its schedules."""

    def __init__(self, kit: Kit, service: str) -> None:
        self.kit = kit
        self.service = service
        self.plans = PlansClient(gateway=TemporalGateway(kit.client, task_queue=kit.queue))

    @property
    def backup(self) -> str:
        return f"{self.service}/backup"

    async def begin(self, **changes: str) -> WorkflowHandle[object, ScheduledResult]:
        """What a schedule does when it is due."""
        request = ScheduledPlan(
            service=self.service, plan="backup", schedule=f"{self.service}/backup"
        )
        return await self.kit.client.start_workflow(
            "ScheduledRun",
            request.but(**changes),
            id=f"scheduled/{uuid4()}",
            task_queue=self.kit.queue,
            result_type=ScheduledResult,
        )

    async def begun(self) -> None:
        """Until the plan's activity is at work."""
        await until(lambda: _true(bool(self.kit.recorder.begun)))

    async def status(self) -> Status:
        return (await self.plans.show(self.backup)).view.status


async def _true(value: bool) -> bool:
    return value


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    end = time.monotonic() + PATIENCE
    while not await condition():
        assert time.monotonic() < end, "not in time"
        await asyncio.sleep(0.05)


async def failure_of(run: WorkflowHandle[object, ScheduledResult]) -> str:
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(run.result(), PATIENCE)
    cause: BaseException | None = failed.value.cause
    while isinstance(cause, FailureError) and cause.cause is not None:
        cause = cause.cause
    return str(cause)


@pytest_asyncio.fixture(loop_scope="session")
async def clock(env: WorkflowEnvironment, engine_settings: EngineSettings) -> AsyncIterator[Clock]:
    intervals = ScheduledIntervals(heartbeat=timedelta(seconds=0.2), check=timedelta(seconds=0.5))
    plugin = PlansPlugin(settings=engine_settings, intervals=ActivityIntervals(scheduled=intervals))
    service = f"clock-{uuid4().hex[:8]}"
    deploy = PlanSpec.model_validate({"name": "deploy", "phases": {"p": {"steps": steps("d")}}})
    backup = PlanSpec.model_validate(
        {
            "name": "backup",
            "parameters": {"LABEL": {"default": "none"}},
            "phases": {"p": {"steps": steps("b")}},
        }
    )
    request = ServiceInput(spec=ServiceSpec(name=service, pods=(POD,)), plans=(deploy, backup))
    async with kit(env.client.service_client.config.target_host, plugin) as made:
        handle = await made.client.start_workflow(
            "Service", request, id=f"service/{service}", task_queue=made.queue
        )
        clock = Clock(made, service)
        await until(lambda: _complete(clock, f"{service}/deploy"))
        await until(lambda: _waiting(clock))
        made.recorder.begun.clear()
        yield clock
        await handle.terminate()


async def _complete(clock: Clock, plan_id: str) -> bool:
    records = await clock.plans.plans(clock.service)
    return any(r.workflow_id == plan_id and r.status is Status.COMPLETE for r in records)


async def _waiting(clock: Clock) -> bool:
    return await clock.status() is Status.WAITING


async def test_a_run_lasts_until_the_plan_is_complete(clock: Clock) -> None:
    gate = clock.kit.recorder.gates["b"] = asyncio.Event()
    run = await clock.begin()
    await clock.begun()
    assert (await run.describe()).status is WorkflowExecutionStatus.RUNNING
    gate.set()
    result = await asyncio.wait_for(run.result(), PATIENCE)
    assert result == ScheduledResult(plan_id=clock.backup, started=True, status=Status.COMPLETE)
    [entry] = (await clock.plans.log(clock.backup)).entries
    assert (entry.verb, entry.by) == ("start", f"schedule {clock.backup}")


async def test_a_plan_that_has_ended_is_begun_anew_by_its_service(clock: Clock) -> None:
    for _ in range(2):
        run = await clock.begin()
        assert (await asyncio.wait_for(run.result(), PATIENCE)).started
    assert clock.kit.recorder.done.count("b") == 2


async def test_a_plan_at_work_is_left_alone(clock: Clock) -> None:
    gate = clock.kit.recorder.gates["b"] = asyncio.Event()
    await clock.plans.command(clock.backup, Verb.START, Command(by="me"))
    await clock.begun()
    result = await asyncio.wait_for((await clock.begin()).result(), PATIENCE)
    assert not result.started
    assert "was already in progress" in result.message
    gate.set()
    await until(lambda: _complete(clock, clock.backup))
    assert clock.kit.recorder.done.count("b") == 1


async def test_an_operators_interrupt_is_not_lifted(clock: Clock) -> None:
    clock.kit.recorder.gates["b"] = asyncio.Event()
    await clock.plans.command(clock.backup, Verb.START, Command(by="me"))
    await clock.begun()
    await clock.plans.command(clock.backup, Verb.INTERRUPT, Command(by="me"))
    assert "in an earlier run and waits for an operator" in await failure_of(await clock.begin())


async def test_it_fails_when_the_plan_waits_in_error(clock: Clock) -> None:
    clock.kit.recorder.failures["b"] = 1
    assert "is ERROR" in await failure_of(await clock.begin())


async def test_it_fails_when_the_plan_is_stopped(clock: Clock) -> None:
    clock.kit.recorder.gates["b"] = asyncio.Event()
    run = await clock.begin()
    await clock.begun()
    await clock.plans.command(clock.backup, Verb.STOP, Command(by="me", reason="disk is full"))
    assert "was stopped by me: disk is full" in await failure_of(run)


async def test_it_fails_when_the_plan_is_terminated(clock: Clock) -> None:
    clock.kit.recorder.gates["b"] = asyncio.Event()
    run = await clock.begin()
    await clock.begun()
    await clock.kit.client.get_workflow_handle(clock.backup).terminate("enough")
    assert clock.backup in await failure_of(run)


async def test_cancelled_it_stops_the_plan(clock: Clock) -> None:
    """As ``--overlap cancel-other`` does."""
    clock.kit.recorder.gates["b"] = asyncio.Event()
    run = await clock.begin()
    await clock.begun()
    await run.cancel()
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(run.result(), PATIENCE)
    assert isinstance(failed.value.cause, CancelledError)
    verbs = [entry.verb for entry in (await clock.plans.log(clock.backup)).entries]
    assert verbs == ["start", "stop"]


@pytest.mark.engine(answer_timeout=timedelta(seconds=0.1))
async def test_a_run_that_is_long_in_starting_is_waited_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the plan's last run is there to be found."""
    await asyncio.wait_for((await clock.begin()).result(), PATIENCE)
    may_start = asyncio.Event()

    async def slow(client: Client, workflow_id: str) -> WorkflowExecutionDescription | None:
        await may_start.wait()
        return await described(client, workflow_id)

    monkeypatch.setattr(plans, "described", slow)  # which starting a plan begins with
    clock.kit.recorder.failures["b"] = 1
    run = await clock.begin()
    activity = "start_scheduled_plan"
    await until(lambda: _tried_again(run, activity))
    may_start.set()
    assert "b is broken" in await failure_of(run)


async def test_a_run_that_fails_at_once_is_told(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have no log in which its start could be found."""
    await asyncio.wait_for((await clock.begin()).result(), PATIENCE)

    async def broken(_: PlanActivities, start: PlanStart) -> PlanInput:
        return start.input.but(strategy=StrategySpec(name="nope"))

    monkeypatch.setattr(PlanActivities, "_input_from_last_run", broken)
    assert "nope" in await failure_of(await clock.begin())


async def _tried_again(run: WorkflowHandle[object, ScheduledResult], activity: str) -> bool:
    pending = (await run.describe()).raw_description.pending_activities
    return any(one.activity_type.name == activity and one.attempt > 1 for one in pending)


async def test_another_run_of_the_plan_is_not_stopped(clock: Clock) -> None:
    run = await clock.begin()
    await asyncio.wait_for(run.result(), PATIENCE)
    log = await clock.plans.log(clock.backup)
    before = await described(clock.kit.client, clock.backup)
    assert before is not None
    clock.kit.recorder.begun.clear()
    clock.kit.recorder.gates["b"] = asyncio.Event()
    mark = log.entries[-1].mark
    same_words = Command(by="operator", reason=log.entries[-1].reason)
    await clock.plans.command(clock.backup, Verb.START, same_words)
    await clock.begun()
    ours = ScheduledStart(plan_id=clock.backup, started=True, mark=mark, first_run_id=before.run_id)
    await ScheduledActivities(clock.kit.client).stop_scheduled_plan(ours)
    verbs = [entry.verb for entry in (await clock.plans.log(clock.backup)).entries]
    assert verbs == ["start", "start"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param({"service": "nobody"}, "'nobody' does not exist any more", id="service"),
        pytest.param({"plan": "bakup"}, "plan bakup not found", id="plan"),
    ],
)
async def test_what_is_not_there(clock: Clock, changes: dict[str, str], text: str) -> None:
    assert text in await failure_of(await clock.begin(**changes))


async def test_a_schedule_from_its_making_to_its_end(clock: Clock) -> None:
    client = clock.plans
    arguments = {"LABEL": "night"}
    schedule = await client.schedule(
        clock.service, "backup", NIGHTLY, arguments=arguments, note="me: asked for"
    )
    assert schedule == clock.backup
    with pytest.raises(Refused, match="already"):
        await client.schedule(clock.service, "backup", NIGHTLY)
    shown = await client.show_schedule(schedule)
    assert (shown.service, shown.plan, shown.parameters) == (clock.service, "backup", arguments)
    assert (shown.when, shown.overlap, shown.note) == (NIGHTLY, Overlap.SKIP, "me: asked for")
    assert shown.next[0].minute == 0
    await until(lambda: _listed(client, clock.service, [schedule]))

    await client.trigger_schedule(schedule)
    await until(lambda: _complete(clock, clock.backup))
    ran: ScheduleView = await client.show_schedule(schedule)
    assert ran.runs == 1
    [run] = ran.recent
    assert run.workflow_id.startswith(f"scheduled/{clock.backup}-")
    assert (await client.show(clock.backup)).view.parameters == arguments

    await client.pause_schedule(schedule, "me: moving")
    paused = await client.show_schedule(schedule)
    assert (paused.paused, paused.note) == (True, "me: moving")
    await client.unpause_schedule(schedule, "me: moved")
    assert not (await client.show_schedule(schedule)).paused
    await client.delete_schedule(schedule)
    for verb in (client.delete_schedule, client.trigger_schedule, client.pause_schedule):
        with pytest.raises(ScheduleNotFound):  # though the server still knows that it was there
            await verb(schedule)
    with pytest.raises(ScheduleNotFound):
        await client.show_schedule(schedule)


async def _listed(client: PlansClient, service: str, ids: list[str]) -> bool:
    return [line.id for line in await client.schedules(service)] == ids


async def test_a_cron_expression_that_is_none_is_refused(clock: Clock) -> None:
    with pytest.raises(Refused):
        await clock.plans.schedule(clock.service, "backup", Timetable(cron=("at noon",)))


async def test_a_plan_of_no_service(clock: Clock) -> None:
    name = f"nap-{uuid4().hex[:8]}"
    plan = PlanSpec.model_validate({"name": name, "phases": {"p": {"steps": steps("n")}}})
    every = Timetable(every=(timedelta(days=30),))
    schedule = await clock.plans.schedule_plan(plan, every)
    shown = await clock.plans.show_schedule(schedule)
    assert (shown.plan, shown.service, shown.when) == (name, "", every)
    await clock.plans.trigger_schedule(schedule)
    await until(lambda: _true("n" in clock.kit.recorder.done))

    async def is_listed(*, scheduled: bool) -> bool:
        plans = await clock.plans.own_plans(scheduled=scheduled)
        return any(plan.id.startswith(name) and plan.ended for plan in plans)

    await until(lambda: is_listed(scheduled=True))
    assert not await is_listed(scheduled=False)
    await clock.plans.delete_schedule(schedule)
