"""The Service entity on a real server: records, statuses, leases, its plans, long life."""

import asyncio
import dataclasses
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment

from pauses import PATIENCE, until
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.activities.owners import plans as plan_activities
from temporal_plans.activities.owners.plans import PlanActivities
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.owners.rollout import PhaseRollout, Rollout
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Command
from temporal_plans.domain.plans.leases import Lease
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.spec import PhaseYaml, PlanYaml
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.owners import (
    OpenPlans,
    OwnerState,
    PlanStart,
    Rollback,
    StartPlan,
    UninstallRequest,
    Unsent,
)
from temporal_plans.messages.plans import (
    PLAN_RUN,
    PLAN_STARTER,
    CommandLog,
    LeaseGrant,
    LeaseRequest,
    PlanInput,
    PlanReport,
    PlanResult,
)
from temporal_plans.messages.services import (
    ChangeView,
    DeployResult,
    ServiceInput,
    ServiceState,
)
from temporal_plans.messages.tasks import TaskStatuses
from workflows.plan_kit import Kit
from workflows.service_kit import (
    Listener,
    heard_by,
    record,
    report,
    spec,
    started,
    status,
)


async def test_what_another_services_plan_says_counts_for_nothing(plans: Kit) -> None:
    """It had the same name, was terminated, and its plan goes on to its end."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    handle = await started(plans, plans=(PlanSpec(name="deploy", phases=(approval,)),))
    await until(lambda: status(handle), lambda now: now.plans)
    plan = f"{handle.id.removeprefix('service/')}/deploy"
    await _running(plans, plan)
    over = PlanReport(
        plan="deploy",
        run=1,
        starter="another",
        workflow_id=plan,
        status=Status.COMPLETE,
        open=False,
    )
    await handle.signal("plan_changed", over)
    assert (await status(handle)).plans[0].open
    await handle.signal("plan_changed", over.but(starter=str(handle.first_execution_run_id)))
    assert not (await status(handle)).plans[0].open
    await plans.client.get_workflow_handle(plan).terminate()
    await handle.terminate()


async def test_a_run_that_is_over_is_not_begun_again(plans: Kit) -> None:
    """An attempt to start it that was frozen goes on after all."""
    plan, env = f"plan-{uuid4()}", ActivityEnvironment()
    env.info = dataclasses.replace(env.info, task_queue=plans.queue)
    memo = {PLAN_RUN: 2, PLAN_STARTER: "us"}
    handle = await plans.client.start_workflow(
        "Plan", _waiting(), id=plan, task_queue=plans.queue, memo=memo
    )
    await handle.terminate()
    for run in (1, 2):
        start = PlanStart(workflow_id=plan, run=run, starter="us", input=_waiting())
        await env.run(PlanActivities(plans.client).start_plan, start)
    again = await described(plans.client, plan)
    assert again is not None
    assert again.run_id == handle.result_run_id
    # A Service that was reset counts on from there: run 1 is another one now.
    anew = PlanStart(workflow_id=plan, run=1, starter="us", at=datetime.now(UTC), input=_waiting())
    await env.run(PlanActivities(plans.client).start_plan, anew)
    again = await described(plans.client, plan)
    assert again is not None
    assert again.run_id != handle.result_run_id
    await plans.client.get_workflow_handle(plan).terminate()


async def test_plans_are_started_listed_and_run_again(plans: Kit) -> None:
    handle = await started(plans)
    deploy = await _closed(plans, handle)
    again = await handle.execute_update("start_plan", StartPlan(plan="deploy", by="me"))
    assert again["result"] == "done"
    assert (await _closed(plans, handle)) != deploy
    plan = (await status(handle)).plans[0]
    assert (plan.name, plan.status, plan.run) == ("deploy", Status.COMPLETE, 2)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("start_plan", StartPlan(plan="deplyo"))
    assert "did you mean deploy" in str(refused.value.cause)
    await handle.terminate()


async def _closed(plans: Kit, handle: "WorkflowHandle[Any, None]") -> str:
    """The run id of the deploy plan, once the service has heard of its end."""
    end = time.monotonic() + PATIENCE
    while True:
        known = (await status(handle)).plans
        if known and not known[0].open and known[0].status is Status.COMPLETE:
            described = await plans.client.get_workflow_handle(known[0].workflow_id).describe()
            if described.status is WorkflowExecutionStatus.COMPLETED:
                return described.run_id
        assert time.monotonic() < end, known
        await asyncio.sleep(0.05)


async def test_who_holds_an_asset_keeps_it(plans: Kit) -> None:
    handle = await started(plans)

    def lease(phase: str, priority: int) -> Lease:
        return Lease(
            plan=phase,
            phase=phase,
            step=0,
            pod="web",
            index=0,
            tasks=("server",),
            priority=priority,
        )

    await handle.signal("leases", LeaseRequest(phase="later", wants=(lease("later", 10),)))
    await handle.signal("leases", LeaseRequest(phase="first", wants=(lease("first", 0),)))
    assert [held.phase for held in (await status(handle)).leases] == ["later"]
    await handle.signal("leases", LeaseRequest(phase="later", returns=(0,)))
    assert [held.phase for held in (await status(handle)).leases] == ["first"]
    await handle.terminate()


async def test_what_the_run_before_left_is_sent_first(
    plans: Kit, listener: "WorkflowHandle[Listener, None]"
) -> None:
    status = report("one", 0, 1, TaskState.RUNNING)
    grant = LeaseGrant(granted={0: 3}, held={1: "svc/deploy/p"})
    left = (
        Unsent(receiver="nobody", signal="leased", message=grant),
        Unsent(receiver=listener.id, signal="leased", message=grant),
        Unsent(
            receiver=listener.id,
            signal="task_statuses",
            message=TaskStatuses(statuses=(status,)),
        ),
    )
    handle = await started(plans, state=ServiceState(owner=OwnerState(unsent=left)))
    assert await heard_by(listener, 1) == (status,)
    assert await listener.query(Listener.grants) == [grant]
    await handle.terminate()


LONG = "x" * 2000


def _wants(phase: str) -> dict[str, Any]:
    want = {"plan": "p", "phase": phase, "step": 0, "pod": "web", "index": 7, "tasks": ["server"]}
    return {"phase": phase, "wants": [want]}


REFUSED_BY_THE_SERVER = [
    pytest.param("leases", _wants(""), id="signal-to-nobody"),
    pytest.param("leases", _wants(LONG), id="signal-to-a-long-id"),
    pytest.param("subscribe", {"owner": "", "task_ids": ["one"]}, id="owner-nobody"),
    pytest.param("subscribe", {"owner": LONG, "task_ids": ["one"]}, id="owner-a-long-id"),
    pytest.param(
        "subscribe",
        {"owner": "x", "task_ids": [f"t{i}" for i in range(20_000)]},
        id="a-long-answer",
    ),
    pytest.param(
        "task_statuses",
        {
            "statuses": [
                {
                    "task_id": "two",
                    "name": "web-0-server",
                    "state": "RUNNING",
                    "sequence": 1,
                    "at": "2026-01-01T00:00:00Z",
                    "agent": LONG,
                }
            ]
        },
        id="kill-on-a-long-queue",
    ),
]


@pytest.mark.parametrize(("signal", "message"), REFUSED_BY_THE_SERVER)
async def test_no_message_has_it_do_what_the_server_refuses(
    plans: Kit, signal: str, message: dict[str, Any]
) -> None:
    """The server would refuse that at every retry, for ever."""
    handle = await started(plans)
    await record(handle, 0, "one")
    await handle.signal(signal, message)
    runs = report("one", 0, 1, TaskState.RUNNING)
    await handle.signal("task_statuses", TaskStatuses(statuses=(runs,)))
    async with asyncio.timeout(PATIENCE):
        for index in (1, 2, 3):  # what it answers to the signal is sent by and by
            await record(handle, index, f"later-{index}")
            await asyncio.sleep(0.3)
    await handle.terminate()


async def test_every_uninstall_is_in_the_log(plans: Kit) -> None:
    """Also one that comes when the service is going already."""
    agent = f"away-{uuid4()}"
    handle = await started(plans)
    await record(handle, 0, "one", agent)  # which keeps it from going
    for reason in ("first", "again"):
        await handle.execute_update("uninstall", UninstallRequest(by="ann", reason=reason))
    log: CommandLog = await handle.query("log", result_type=CommandLog)
    said = [(entry.reason, http_code(entry.outcome)) for entry in log.entries]
    assert said == [("first", 200), ("again", 208)]
    await handle.terminate()


async def test_parameters_that_a_plan_does_not_allow_are_refused(plans: Kit) -> None:
    parameters = [{"name": "NAME", "required": True, "pattern": "[a-z]+"}]
    plan = PlanSpec.model_validate({"name": "deploy", "parameters": parameters, "phases": []})
    handle = await started(plans, plans=(plan,))
    await until(lambda: status(handle), lambda status: status.plans)
    for given, problem in (
        ({}, "parameters.NAME: the plan needs this parameter"),
        ({"NAME": "1"}, "parameters.NAME: does not match [a-z]+"),
        ({"NAME": "a", "NOPE": "1"}, "parameters.NOPE: the plan declares no such parameter"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("start_plan", StartPlan(plan="deploy", parameters=given))
        assert problem in str(refused.value.cause)
    await handle.terminate()


async def test_a_plan_that_is_over_is_closed_whatever_its_memo(plans: Kit) -> None:
    over, runs = f"over-{uuid4()}", f"runs-{uuid4()}"
    for plan in (over, runs):
        await plans.client.start_workflow("Plan", _waiting(), id=plan, task_queue=plans.queue)
    await plans.client.get_workflow_handle(over).terminate()
    asked = OpenPlans(workflow_ids=(over, runs, "never was"))
    answer = await PlanActivities(plans.client).closed_plans(asked)
    assert answer.workflow_ids == (over, "never was")
    await plans.client.get_workflow_handle(runs).terminate()


@pytest.mark.parametrize(
    ("memo", "text"),
    [
        pytest.param({}, "which no service started", id="nobody's"),
        pytest.param(
            {PLAN_RUN: 1, PLAN_STARTER: "me"}, "which is the plan's run 1", id="earlier-run"
        ),
        pytest.param(
            {PLAN_RUN: 2, PLAN_STARTER: "it"}, "which run it of a service started", id="another's"
        ),
        pytest.param({PLAN_RUN: 2, PLAN_STARTER: "me"}, "", id="this-start"),
    ],
)
async def test_a_plan_is_started_unless_another_is_in_the_way(
    plans: Kit, memo: dict[str, Any], text: str
) -> None:
    plan = f"plan-{uuid4()}"
    handle = await plans.client.start_workflow(
        "Plan", _waiting(), id=plan, task_queue=plans.queue, memo=memo
    )
    env = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, workflow_run_id="me", task_queue=plans.queue)
    start = PlanStart(workflow_id=plan, run=2, input=_waiting())
    activities = PlanActivities(plans.client)
    if text:
        with pytest.raises(ApplicationError, match=text) as refused:
            await env.run(activities.start_plan, start)
        assert not refused.value.non_retryable
        assert plan in refused.value.message
    else:
        await env.run(activities.start_plan, start)
    if "the plan's run" in text:  # its Service takes it for over, so nobody else will end it
        ended = await asyncio.wait_for(handle.result(), PATIENCE)
        assert PlanResult.model_validate(ended).superseded
        await env.run(activities.start_plan, start)
    await plans.client.get_workflow_handle(plan).terminate()


def _waiting() -> PlanInput:
    return PlanInput.model_validate(
        {"name": "p", "phases": {"a": {"steps": {"s": {"approval": {}}}}}}
    )


async def test_a_plan_that_is_back_is_started(plans: Kit) -> None:
    """It had a run before it was dropped, whose number must not be given again."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    backup = PlanSpec(name="backup", phases=(approval,))
    deploy = PlanSpec(name="deploy", phases=(approval,))
    handle = await started(plans, plans=(deploy, backup))
    name = handle.id.removeprefix("service/")

    async def deployed(*made: PlanSpec) -> None:
        changed = ServiceInput(spec=spec(name), plans=made)
        answer = await handle.execute_update("deploy", changed)
        assert answer["outcome"]["result"] == "done"

    first = await _running(plans, f"{name}/backup")
    await deployed(deploy)
    end = time.monotonic() + PATIENCE
    while any(plan.name == "backup" for plan in (await status(handle)).plans):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    await deployed(deploy, backup)
    assert await _running(plans, f"{name}/backup", other_than=first)
    await handle.terminate()


@pytest.mark.engine(ending_check_interval=timedelta(0))
async def test_a_plan_that_begins_while_others_are_looked_after_is_open(
    own_plans: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looked for it a moment before it was there saw its former run, which is over."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    deploy, backup = (PlanSpec(name=name, phases=(approval,)) for name in ("deploy", "backup"))
    handle = await started(own_plans, plans=(deploy, backup))
    name = handle.id.removeprefix("service/")
    await _running(own_plans, f"{name}/backup")
    await _running(own_plans, f"{name}/deploy")
    forced = Command(reason="to its end")
    plan = own_plans.client.get_workflow_handle(f"{name}/deploy")
    await plan.execute_update("force_complete", forced)
    await until(lambda: status(handle), lambda now: not now.plans[0].open)

    looked = asyncio.Event()
    begun = await _finished(handle, "start_plan")

    async def looking(client: Client, workflow_id: str) -> Any:
        found = await described(client, workflow_id)
        if not workflow_id.startswith(f"{name}/"):
            return found
        if activity.info().activity_type == "start_plan":
            await asyncio.wait_for(looked.wait(), PATIENCE)
        elif activity.info().activity_type == "closed_plans":
            looked.set()
            await until(lambda: _finished(handle, "start_plan"), lambda done: done > begun)
        return found

    monkeypatch.setattr(plan_activities, "described", looking)
    two = backup.but(phases=(approval, approval.but(name="q")))  # it has to leave for that
    answer = await handle.execute_update(
        "deploy", ServiceInput(spec=spec(name), plans=(deploy, two))
    )
    assert answer["outcome"]["result"] == "done"
    await until(lambda: _finished(handle, "closed_plans"), lambda done: done > 0)
    await until(lambda: status(handle), lambda now: now.plans[1].open)
    assert (await status(handle)).plans[0].open
    await handle.terminate()


async def _finished(handle: "WorkflowHandle[Any, None]", name: str) -> int:
    """How many activities of that type it has had."""
    types: dict[int, str] = {}
    done = 0
    async for event in handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        types[event.event_id] = scheduled.activity_type.name
        over = event.activity_task_completed_event_attributes.scheduled_event_id
        done += bool(over) and types[over] == name
    return done


async def _running(plans: Kit, workflow_id: str, other_than: str = "") -> str:
    """The run id of a workflow that runs, once it does."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            described = await plans.client.get_workflow_handle(workflow_id).describe()
        except RPCError:
            described = None
        runs = described is not None and described.status is WorkflowExecutionStatus.RUNNING
        if described is not None and runs and described.run_id not in (None, other_than):
            return str(described.run_id)
        assert time.monotonic() < end, workflow_id
        await asyncio.sleep(0.05)


WRONG_OPTIONS = [
    pytest.param({"rollout": Rollout(phases={"wbe": PhaseRollout(canary=1)})}, id="phase"),
    pytest.param({"pool": "other"}, id="pool"),
]


@pytest.mark.parametrize("options", WRONG_OPTIONS)
async def test_wrong_options_of_a_deployment_change_nothing(
    plans: Kit, options: dict[str, Any]
) -> None:
    """They are refused, and the plan deploy stays what it is."""
    service = await started(plans)
    await until(
        lambda: status(service),
        lambda seen: seen.plans and not seen.plans[0].open,
    )
    before = await status(service)
    (pod,) = spec(before.name).pods
    changed = spec(before.name).but(pods=(pod.but(placement='[["hostname", "UNIQUE"]]'),))
    result = await service.execute_update(
        "deploy", ServiceInput(spec=changed, **options), result_type=DeployResult
    )
    assert result.outcome.refused
    assert result.change is not None
    assert result.change.problems
    assert "options" in result.outcome.message
    after = await status(service)
    assert (after.errors, after.number, after.plans) == ((), 1, before.plans)
    accepted = await service.execute_update(
        "deploy", ServiceInput(spec=changed), result_type=DeployResult
    )
    assert (accepted.outcome.changed, accepted.number) == (True, 2)


async def test_a_change_of_plans_or_settings_alone_is_told(plans: Kit) -> None:
    service = await started(plans)
    before = await status(service)
    phases = {"web": PhaseYaml(pod="web", strategy="canary")}
    changed = spec(before.name).but(plans={"deploy": PlanYaml(phases=phases)})
    request = ServiceInput(spec=changed, backoff=Backoff(factor=3))
    preview = await service.query("preview", request, result_type=ChangeView)
    result = await service.execute_update("deploy", request, result_type=DeployResult)
    for change in (preview, result.change):
        assert change is not None
        assert [plan.plan for plan in change.plans] == ["deploy"]
        assert [field.path for field in change.settings] == ["backoff.factor"]
    runs = await service.query("runs", result_type=RunHistory)
    assert runs.runs[-1].what.startswith("plan deploy: phases.web.strategy serial -> canary; ")
    back = await service.query("preview_rollback", Rollback(config="1"), result_type=ChangeView)
    assert [plan.plan for plan in back.plans] == ["deploy"]
    assert back.settings == ()
    assert back.deploy is not None
    settings = await service.execute_update(
        "deploy", request.but(backoff=Backoff(factor=4)), result_type=DeployResult
    )
    assert (settings.outcome.changed, settings.number) == (False, 2)
    assert settings.outcome.message == "no new configuration; changed: backoff.factor 3 -> 4"


async def test_log_and_history_tell_who_deployed_what_was_refused_and_why(plans: Kit) -> None:
    service = await started(plans)
    await until(lambda: status(service), lambda seen: seen.plans and not seen.plans[0].open)
    (pod,) = spec((await status(service)).name).pods
    name = (await status(service)).name
    twice = spec(name).but(pods=(pod, pod))
    result = await service.execute_update(
        "deploy", ServiceInput(spec=twice, by="ann", reason="more"), result_type=DeployResult
    )
    assert result.outcome.refused
    problem = "pods.web: is defined twice"
    log = await service.query("log", result_type=CommandLog)
    assert (log.entries[-1].verb, log.entries[-1].by) == ("deploy", "ann")
    assert f"number 1 stays in force: {problem}" in log.entries[-1].outcome.message
    runs = await service.query("runs", result_type=RunHistory)
    assert (runs.runs[-1].by, runs.runs[-1].reason) == ("ann", "more")
    assert runs.runs[-1].what == "refused: pods.web"
    signal = {"pdo": "a"}
    await service.signal("pause_pod", signal)
    await service.signal("pause_pods", signal)
    log = await service.query("log", result_type=CommandLog)
    assert [entry.outcome.message for entry in log.entries[-2:]] == [
        'pod: is missing; pdo: unknown key (found "a"); did you mean pod?',
        "unknown signal pause_pods; did you mean pause_pod or replace_pod or resume_pod?",
    ]
