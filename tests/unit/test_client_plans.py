"""The verbs, over workflows that answer from memory."""

from datetime import timedelta

import pytest
from pydantic import BaseModel

from temporal_plans.cli.explaining import explanation_lines
from temporal_plans.client.connection import ServerUnreachableError
from temporal_plans.client.errors import (
    AgentUnreachable,
    Ambiguous,
    PlanNotFound,
    PlansError,
    Refused,
    ServiceNotFound,
    TaskNotFound,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.gateway import Ended, EndedMeanwhile, WorkflowIsEnding
from temporal_plans.client.plan_run import PlanRun, Trouble
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.watching import watch
from temporal_plans.domain.cluster import Refusal, Requirement
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.explain import Cause, Explanation, Explanations
from temporal_plans.domain.plan import ParameterSpec, PhaseSpec, PlanSpec, SleepWork, StepSpec
from temporal_plans.domain.pod_verb import PodVerb
from temporal_plans.domain.status import Status
from temporal_plans.messages.cluster import LogChunk, PoolStatus, ReadLogInput, WaitingView
from temporal_plans.messages.plan import CommandLog, LogEntry, PlanInput, PlanResult
from temporal_plans.messages.service import PlanRecord, ServiceStatus, StartPlan, TaskRecord, Tasks
from unit.fake_gateway import THEN, Call, FakeGateway, FakeWorkflow, Model
from unit.views import phase, plan

DONE = Outcome(code=200, message="Received cmd: start")
NAP = PhaseSpec(
    name="rest", steps=(StepSpec(name="nap", work=SleepWork(duration=timedelta(seconds=1))),)
)
BACKUP = PlanSpec(
    name="backup",
    description="Keeps a copy",
    parameters=(ParameterSpec(name="LABEL", required=True, pattern="[a-z]+"),),
    phases=(NAP,),
)


def service(*plans: str, name: str = "hello", **answers: object) -> FakeWorkflow:
    records = tuple(
        PlanRecord(name=plan, workflow_id=f"{name}/{plan}", priority=i)
        for i, plan in enumerate(plans)
    )
    status = ServiceStatus(name=name, config_id="1", pool="default", plans=records)
    return FakeWorkflow("Service", {"status": status, "start_plan": DONE, **answers})  # type: ignore[dict-item]


def own_plan(ended: Ended | None = Ended.COMPLETED) -> FakeWorkflow:
    fields = {name: getattr(BACKUP, name) for name in PlanSpec.model_fields}
    log = CommandLog(entries=(LogEntry(at=THEN, verb="stop", via="signal", outcome=DONE),))
    return FakeWorkflow(
        "Plan",
        {"log": log, "status": plan(Status.COMPLETE)},
        ended=ended,
        input=PlanInput(**fields, arguments={"LABEL": "old"}, interrupted=True, seed=7),
        result=PlanResult(status=Status.COMPLETE, view=plan(Status.COMPLETE)),
    )


def client_of(**workflows: FakeWorkflow) -> tuple[PlansClient, FakeGateway]:
    """``__`` in a name is ``/``."""
    gateway = FakeGateway({id.replace("__", "/"): flow for id, flow in workflows.items()})
    return PlansClient(gateway=gateway), gateway


# --- commands -----------------------------------------------------------------------------------


async def test_a_command_to_an_open_plan_is_its_update() -> None:
    client, gateway = client_of(backup=FakeWorkflow("Plan", {"continue": DONE}))
    command = Command(phase="rest")
    assert await client.command("backup", Verb.CONTINUE, command) == DONE
    assert gateway.told == [Call("backup", "continue", command)]


async def test_a_refusal_is_raised_as_it_is() -> None:
    client, _ = client_of(backup=FakeWorkflow("Plan", {"restart": Refused("Phase x not found")}))
    with pytest.raises(Refused, match="Phase x not found"):
        await client.command("backup", Verb.RESTART, Command(phase="x"))


async def test_a_plan_that_ends_over_a_command_has_taken_it() -> None:
    client, _ = client_of(backup=FakeWorkflow("Plan", {"force_complete": EndedMeanwhile()}))
    outcome = await client.command("backup", Verb.FORCE_COMPLETE, Command())
    assert (outcome.code, outcome.changed) == (202, True)


@pytest.mark.parametrize(
    "verb", [Verb.STOP, Verb.CONTINUE, Verb.INTERRUPT, Verb.FORCE_COMPLETE], ids=str
)
async def test_a_complete_plan_is_past_commands(verb: Verb) -> None:
    client, gateway = client_of(backup=own_plan())
    outcome = await client.command("backup", verb, Command())
    assert (outcome.code, outcome.changed) == (208, False)
    assert gateway.told == []


@pytest.mark.parametrize("ended", [Ended.TERMINATED, Ended.CANCELED, Ended.FAILED])
async def test_a_plan_that_was_cut_short_says_what_would_help(ended: Ended) -> None:
    client, _ = client_of(backup=own_plan(ended))
    with pytest.raises(Refused, match=f"was {ended.value}.*`start` or `restart` begins it anew"):
        await client.command("backup", Verb.CONTINUE, Command())


@pytest.mark.parametrize("command", [Command(phase="rest"), Command(phase="rest", step="nap")])
async def test_only_the_whole_of_an_ended_plan_can_be_restarted(command: Command) -> None:
    client, _ = client_of(backup=own_plan())
    with pytest.raises(Refused, match="leave phase and step out"):
        await client.command("backup", Verb.RESTART, command)


async def test_an_ended_plan_of_a_service_is_started_by_the_service() -> None:
    client, gateway = client_of(
        service__hello=service("deploy"), hello__deploy=FakeWorkflow("Plan", ended=Ended.COMPLETED)
    )
    command = Command(parameters={"A": "1"}, reason="why", by="me")
    assert await client.command("hello/deploy", Verb.START, command) == DONE
    start = StartPlan(plan="deploy", parameters={"A": "1"}, reason="why", by="me")
    assert gateway.told == [Call("service/hello", "start_plan", start)]


class Ending(FakeGateway):
    """The plan refuses, because it is about to end, and then has ended; its service does not know
    of that at once."""

    late = True

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        plan = self.workflows["hello/deploy"]
        if workflow_id == "hello/deploy" and plan.ended is None:
            plan.ended = Ended.COMPLETED
            raise WorkflowIsEnding
        answer = await super().update(workflow_id, name, argument, result)
        if name == "start_plan" and self.late:
            self.late = False
            return result.model_validate({"code": 208, "message": "it is running"})
        return answer


async def test_a_start_that_meets_the_end_of_the_run_before_begins_the_next() -> None:
    gateway = Ending({"service/hello": service("deploy"), "hello/deploy": FakeWorkflow("Plan")})
    client = PlansClient(gateway=gateway)
    assert await client.command("hello/deploy", Verb.START, Command()) == DONE
    started = Call("service/hello", "start_plan", StartPlan(plan="deploy"))
    assert gateway.told == [started, started]


async def test_restart_of_a_services_plan_says_so() -> None:
    client, gateway = client_of(
        service__hello=service("deploy"), hello__deploy=FakeWorkflow("Plan", ended=Ended.TERMINATED)
    )
    await client.command("hello/deploy", Verb.RESTART, Command())
    assert gateway.told == [
        Call("service/hello", "start_plan", StartPlan(plan="deploy", verb=Verb.RESTART))
    ]


async def test_a_plan_that_a_service_never_started_can_be_started() -> None:
    client, gateway = client_of(service__hello=service("deploy", "backup"))
    assert await client.command("hello/backup", Verb.START, Command()) == DONE
    assert gateway.told == [Call("service/hello", "start_plan", StartPlan(plan="backup"))]
    with pytest.raises(Refused, match="was never started; `start` begins it"):
        await client.command("hello/backup", Verb.INTERRUPT, Command())


async def test_start_of_an_ended_own_plan_is_a_new_run_of_the_old_input() -> None:
    client, gateway = client_of(backup=own_plan())
    command = Command(parameters={"LABEL": "new"}, reason="again", by="me")
    assert (await client.command("backup", Verb.START, command)).code == 200
    [call] = gateway.told
    assert isinstance(call.argument, PlanInput)
    assert (call.to, call.name) == ("backup", "start")
    assert call.argument.phases == BACKUP.phases
    assert call.argument.arguments == {"LABEL": "new"}
    assert not call.argument.interrupted
    assert call.argument.seed is None
    kept, new = call.argument.log.entries
    assert (kept.verb, kept.via) == ("stop", "signal")
    assert (new.verb, new.by, new.reason, new.outcome.code) == ("start", "me", "again", 200)


async def test_restart_of_an_ended_own_plan_keeps_its_arguments() -> None:
    client, gateway = client_of(backup=own_plan(Ended.TERMINATED))
    await client.command("backup", Verb.RESTART, Command())
    argument = gateway.told[0].argument
    assert isinstance(argument, PlanInput)
    assert argument.arguments == {"LABEL": "old"}


async def test_wrong_arguments_start_nothing() -> None:
    client, gateway = client_of(backup=own_plan())
    with pytest.raises(Refused, match=r"parameters\.LABEL: does not match \[a-z\]\+"):
        await client.command("backup", Verb.START, Command(parameters={"LABEL": "X"}))
    assert gateway.told == []


@pytest.mark.parametrize(
    ("plan_id", "message"),
    [
        ("bakcup", "plan 'bakcup' not found; did you mean backup"),
        ("hello/deplo", "service 'hello' has no plan 'deplo'; did you mean deploy"),
        ("helo/deploy", "plan 'helo/deploy' not found"),
    ],
)
async def test_an_unknown_plan(plan_id: str, message: str) -> None:
    client, _ = client_of(service__hello=service("deploy"), backup=own_plan())
    for asked in (
        client.command(plan_id, Verb.CONTINUE, Command()),
        client.show(plan_id),
        client.log(plan_id),
    ):
        with pytest.raises(PlanNotFound, match=message):
            await asked


# --- running and deploying ----------------------------------------------------------------------


async def test_run_takes_the_plans_name_as_its_id() -> None:
    client, gateway = client_of()
    assert await client.run(BACKUP, arguments={"LABEL": "a"}) == "backup"
    [call] = gateway.told
    assert isinstance(call.argument, PlanInput)
    assert call.argument.phases == BACKUP.phases
    assert call.argument.arguments == {"LABEL": "a"}


async def test_run_keeps_who_and_why() -> None:
    client, gateway = client_of()
    await client.run(BACKUP, arguments={"LABEL": "a"}, by="me", reason="asked for")
    [call] = gateway.told
    assert isinstance(call.argument, PlanInput)
    [entry] = call.argument.log.entries
    assert (entry.verb, entry.by, entry.reason, entry.via) == ("start", "me", "asked for", "start")


async def test_a_superseded_plan_is_shown_so() -> None:
    result = PlanResult(status=Status.IN_PROGRESS, view=plan(Status.IN_PROGRESS), superseded=True)
    client, _ = client_of(backup=FakeWorkflow("Plan", ended=Ended.COMPLETED, result=result))
    run = await client.show("backup")
    assert (run.superseded, run.at_rest, run.cut_short) == (True, False, "superseded")


async def test_run_of_an_id_that_runs_is_refused() -> None:
    client, _ = client_of(backup=own_plan(None))
    with pytest.raises(Refused, match=r"'backup' is running.*another --id"):
        await client.run(BACKUP, arguments={"LABEL": "a"})


async def test_run_tells_all_problems() -> None:
    client, gateway = client_of()
    with pytest.raises(SpecError) as raised:
        await client.run(BACKUP.but(phases=()), arguments={"LABLE": "a"})
    assert [problem.path for problem in raised.value.problems] == [
        "phases",
        "parameters.LABLE",
        "parameters.LABEL",
    ]
    assert gateway.told == []


# --- reading ------------------------------------------------------------------------------------


async def test_show_of_a_complete_plan_is_its_result() -> None:
    client, _ = client_of(backup=own_plan())
    run = await client.show("backup")
    assert (run.ended, run.complete, run.cut_short) == (Ended.COMPLETED, True, "")


async def test_show_of_a_terminated_plan_says_so() -> None:
    workflow = FakeWorkflow("Plan", {"status": plan(Status.WAITING)}, ended=Ended.TERMINATED)
    client, _ = client_of(backup=workflow)
    run = await client.show("backup")
    assert (run.view.status, run.cut_short, run.at_rest) == (Status.WAITING, "terminated", True)


async def test_show_of_a_plan_that_never_began_tells_why() -> None:
    workflow = FakeWorkflow("Plan", {"status": Refused("no handler")}, ended=Ended.FAILED)
    client, _ = client_of(backup=workflow)
    with pytest.raises(Unreadable, match="plan 'backup' failed: the fake has no answer"):
        await client.show("backup")


async def test_show_all_goes_on_over_one_that_fails() -> None:
    client, _ = client_of(backup=own_plan())
    runs = await client.show_all(["backup", "other"])
    assert isinstance(runs["backup"], PlanRun)
    assert isinstance(runs["other"], PlanNotFound)


async def test_own_plans_leave_those_of_services_out() -> None:
    client, _ = client_of(
        service__hello=service("deploy"),
        hello__deploy=FakeWorkflow("Plan"),
        backup=own_plan(),
        nightly__backup=own_plan(),
    )
    assert [run.id for run in await client.own_plans()] == ["backup", "nightly/backup"]


async def test_an_unknown_service_names_the_known() -> None:
    client, _ = client_of(service__hello=service())
    with pytest.raises(ServiceNotFound, match="'helo' not found; did you mean hello"):
        await client.plans("helo")


async def test_a_service_that_ends_over_a_command_says_so() -> None:
    client, _ = client_of(service__hello=FakeWorkflow("Service", {"restart_pod": EndedMeanwhile()}))
    with pytest.raises(Refused, match="'hello' ended before it answered to restart_pod"):
        await client.command_pod("hello", PodVerb.RESTART, "web-0")


def waits(step: str, pod: str) -> Explanations:
    one = Explanation(
        phase="p", step=step, status=Status.PREPARED, cause=Cause.OFFER, text="waits", pod=pod
    )
    return Explanations(status=Status.IN_PROGRESS, explanations=(one,))


def waiting(notify: str, pod: str, index: int = 0) -> WaitingView:
    requirement = Requirement(owner="service/hello", pod=pod, index=index, notify=notify)
    refusal = Refusal(agent="a1", reasons=(("cpus", "too few"),))
    return WaitingView(requirement=requirement, since=THEN, refusals=(refusal,))


@pytest.mark.parametrize(
    ("view", "found"),
    [
        pytest.param(waiting("hello/deploy/p/hello-0:[server]", "hello"), True, id="own-workflow"),
        pytest.param(waiting("hello/deploy/p", "hello"), True, id="inline"),
        pytest.param(waiting("hello/deploy/p", "hello", 1), False, id="other-instance"),
        pytest.param(waiting("hello/deploy/q", "hello"), False, id="other-phase"),
        pytest.param(waiting("other/deploy/p/hello-0:[server]", "hello"), False, id="other-plan"),
    ],
)
async def test_explain_adds_the_pools_refusals(view: WaitingView, found: bool) -> None:
    explained = waits("hello-0:[server]", "hello-0")
    client, _ = client_of(
        hello__deploy=FakeWorkflow("Plan", {"explain": explained}),
        pool__default=FakeWorkflow("Pool", {"status": PoolStatus(name="default", waiting=(view,))}),
    )
    [one] = (await client.explain("hello/deploy")).explanations
    assert bool(one.refusals) is found


@pytest.mark.parametrize(
    ("ended", "status", "text"),
    [
        (Ended.FAILED, Status.ERROR, "the plan's workflow failed before it was COMPLETE: "),
        (Ended.TERMINATED, Status.PENDING, "the plan was terminated before it was COMPLETE; "),
    ],
)
async def test_explain_of_a_plan_that_was_cut_short_says_so(
    ended: Ended, status: Status, text: str
) -> None:
    workflow = FakeWorkflow("Plan", {"status": plan(Status.PENDING)}, ended=ended)
    client, _ = client_of(backup=workflow)
    explanations = await client.explain("backup")
    [one] = explanations.explanations
    assert (explanations.status, one.text.startswith(text)) == (status, True)
    head, *_ = explanation_lines("backup", explanations)
    assert head.plain == f"backup is {status}, {ended.value}"
    assert "begins it anew" in one.text


async def test_explain_of_what_a_plan_that_was_cut_short_has_not() -> None:
    view = plan(Status.PENDING, phase("hello", "serial", Status.PENDING))
    workflow = FakeWorkflow("Plan", {"status": view}, ended=Ended.TERMINATED)
    client, _ = client_of(backup=workflow)
    with pytest.raises(Refused, match="Phase helo not found; did you mean hello"):
        await client.explain("backup", "helo")
    assert (await client.explain("backup", "hello")).explanations


# --- tasks and their logs -----------------------------------------------------------------------


def record(name: str, task_id: str, agent: str = "a1") -> TaskRecord:
    return TaskRecord(
        task_id=task_id,
        name=name,
        pod="hello",
        index=0,
        task="server",
        goal="RUNNING",
        resource_set="s",
        agent=agent,
        hostname="h",
        config_id="1",
        owner="o",
        step="s",
        launched=THEN,
    )


def with_tasks(*records: TaskRecord) -> FakeWorkflow:
    return service("deploy", tasks=Tasks(tasks=records))


@pytest.mark.parametrize("text", ["hello-0-server", "hello__hello-0-server__1"])
async def test_a_task_by_name_or_id(text: str) -> None:
    tasks = with_tasks(record("hello-0-server", "hello__hello-0-server__1"))
    client, _ = client_of(service__hello=tasks)
    assert (await client.find_task(text)).agent == "a1"


async def test_an_unknown_task_names_close_ones() -> None:
    client, _ = client_of(service__hello=with_tasks(record("hello-0-server", "x")))
    with pytest.raises(TaskNotFound, match="did you mean hello-0-server"):
        await client.find_task("helo-0-server")


async def test_a_name_of_two_services_is_ambiguous() -> None:
    client, _ = client_of(
        service__a=with_tasks(record("hello-0-server", "a__1")),
        service__b=with_tasks(record("hello-0-server", "b__1")),
    )
    with pytest.raises(Ambiguous, match="a__1, b__1"):
        await client.find_task("hello-0-server")


async def read(client: PlansClient, gateway: FakeGateway, **how: object) -> str:
    task = await client.find_task("t", agent="a1")
    return "".join([piece async for piece in client.read_log(task, **how)])  # type: ignore[arg-type]


async def test_a_log_is_read_to_its_present_end() -> None:
    client, gateway = client_of()
    gateway.agents["a1"] = [
        LogChunk(text="one\n", next_offset=4),
        LogChunk(text="two\n", next_offset=8),
        LogChunk(next_offset=8),
    ]
    assert await read(client, gateway) == "one\ntwo\n"
    asked = [call.argument for call in gateway.told]
    assert [ask.offset for ask in asked if isinstance(ask, ReadLogInput)] == [0, 4, 8]


async def test_follow_waits_for_more_until_the_task_has_ended() -> None:
    client, gateway = client_of()
    gateway.agents["a1"] = [
        LogChunk(text="one\n", next_offset=4),
        LogChunk(next_offset=4),
        LogChunk(text="two\n", next_offset=8, ended=True),
    ]
    assert await read(client, gateway, follow=True) == "one\ntwo\n"
    asked = [call.argument for call in gateway.told]
    assert all(ask.wait for ask in asked if isinstance(ask, ReadLogInput))


async def test_tail_looks_back_until_there_are_enough_lines() -> None:
    client, gateway = client_of()
    gateway.agents["a1"] = [
        LogChunk(text="x" * 300 + "\nlast\n", next_offset=5000),
        LogChunk(next_offset=5000),
        LogChunk(text="first\n" + "x" * 300 + "\nlast\n", next_offset=5000),
        LogChunk(next_offset=5000),
        LogChunk(next_offset=5000),
    ]
    assert await read(client, gateway, tail=2) == "x" * 300 + "\nlast\n"


async def test_an_agent_that_does_not_answer() -> None:
    client, gateway = client_of()
    with pytest.raises(AgentUnreachable, match="agent 'a1' did not answer"):
        await read(client, gateway)


# --- watching -----------------------------------------------------------------------------------


class Look:
    """Looks at a plan, one after the other."""

    def __init__(self, *seen: PlanRun | Exception) -> None:
        self._seen = list(seen)

    async def __call__(self) -> PlanRun:
        now = self._seen.pop(0)
        if isinstance(now, Exception):
            raise now
        return now


RUNNING = PlanRun(plan(Status.IN_PROGRESS))
COMPLETE = PlanRun(plan(Status.COMPLETE), Ended.COMPLETED)
SHORT = timedelta(milliseconds=1)


async def test_watching_tells_what_is_new_and_ends_with_the_plan() -> None:
    look = Look(RUNNING, RUNNING, COMPLETE)
    assert [seen async for seen in watch(look, fastest=SHORT)] == [RUNNING, COMPLETE]


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(PlanRun(plan(Status.ERROR)), id="error"),
        pytest.param(PlanRun(plan(Status.WAITING), Ended.TERMINATED), id="terminated"),
        pytest.param(PlanRun(plan(Status.COMPLETE)), id="complete-and-about-to-end"),
    ],
)
async def test_watching_ends_when_nothing_more_will_happen(last: PlanRun) -> None:
    assert [seen async for seen in watch(Look(last), fastest=SHORT)] == [last]


@pytest.mark.parametrize(
    "gone",
    [ServerUnreachableError("x", "y"), WorkerUnreachable("backup")],
    ids=["server", "worker"],
)
async def test_watching_outlives_server_and_worker(gone: Exception) -> None:
    look = Look(RUNNING, gone, RUNNING, COMPLETE)
    seen = [seen async for seen in watch(look, fastest=SHORT, pause=SHORT)]
    trouble = seen.pop(1)
    assert isinstance(trouble, Trouble)
    assert trouble.text == str(gone)
    assert seen == [RUNNING, RUNNING, COMPLETE]


SUPERSEDED = PlanRun(plan(Status.IN_PROGRESS), Ended.COMPLETED, superseded=True)


async def test_watching_goes_on_with_the_run_that_takes_its_place() -> None:
    look = Look(RUNNING, SUPERSEDED, RUNNING, COMPLETE)
    seen = [seen async for seen in watch(look, fastest=SHORT)]
    assert seen == [RUNNING, SUPERSEDED, RUNNING, COMPLETE]


async def test_watching_does_not_wait_for_ever_for_the_next_run() -> None:
    look = Look(RUNNING, SUPERSEDED)
    seen = [seen async for seen in watch(look, fastest=SHORT, patience=timedelta())]
    assert seen == [RUNNING, SUPERSEDED]


async def test_watching_ends_when_it_never_began() -> None:
    with pytest.raises(WorkerUnreachable):
        _ = [seen async for seen in watch(Look(WorkerUnreachable("backup")), fastest=SHORT)]


async def test_watching_has_not_endless_patience() -> None:
    look = Look(RUNNING, *[WorkerUnreachable("backup")] * 3)
    with pytest.raises(WorkerUnreachable):
        _ = [s async for s in watch(look, fastest=SHORT, pause=SHORT, patience=timedelta())]


def test_the_tree_of_errors_is_complete() -> None:
    """The docstring draws every class."""
    from temporal_plans.client import errors

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), PlansError)
        assert f" {name}" in (errors.__doc__ or "") or name == "PlansError"
