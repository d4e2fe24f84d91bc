"""The verbs, over workflows that answer from memory."""

from datetime import timedelta

import pytest
from pydantic import BaseModel

from builders.plan_views import phase, plan
from builders.plans import phase_spec, step_spec
from builders.services import service_status
from temporal_plans.api.dialect import http_code
from temporal_plans.cli.terminal.explaining import explanation_lines
from temporal_plans.client.errors import (
    PlanNotFound,
    Refused,
    ServiceNotFound,
    Unreadable,
)
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.client.temporal.workflow_errors import EndedBeforeAnswer, WorkflowIsEnding
from temporal_plans.domain.cluster.refusals import does_not_fit
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Command, CommandRefused, Verb, refuse_parameters
from temporal_plans.domain.plans.explain import Explanation, Explanations
from temporal_plans.domain.plans.plan import ParameterSpec, PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.values.refusal import Code, SpecError
from temporal_plans.messages.owners import StartPlan
from temporal_plans.messages.plans import CommandLog, LogEntry, PlanInput, PlanResult
from temporal_plans.messages.pools import PoolStatus, WaitingView
from unit.client.services import DONE, client_of, service
from unit.fake_gateway import THEN, Call, FakeGateway, FakeWorkflow, Model

NAP = phase_spec("rest", step_spec("nap", SleepWork(duration=timedelta(seconds=1))))
BACKUP = PlanSpec(
    name="backup",
    description="Keeps a copy",
    parameters=(ParameterSpec(name="LABEL", required=True, pattern="[a-z]+"),),
    phases=(NAP,),
)


def own_plan(ended: Ended | None = Ended.COMPLETED) -> FakeWorkflow:
    fields = {name: getattr(BACKUP, name) for name in PlanSpec.model_fields}
    log = CommandLog(entries=(LogEntry(at=THEN, verb="stop", via="signal", outcome=DONE),))
    return FakeWorkflow(
        "Plan",
        {"log": log, "status": plan(Status.COMPLETE)},
        ended=ended,
        input=PlanInput(**fields, arguments={"LABEL": "old"}, interrupted=True),
        result=PlanResult(status=Status.COMPLETE, view=plan(Status.COMPLETE)),
    )


# --- commands -----------------------------------------------------------------------------------


async def test_a_command_to_an_open_plan_is_its_update() -> None:
    client, gateway = client_of(backup=FakeWorkflow("Plan", {"continue": DONE}))
    command = Command(phase="rest")
    assert await client.command("backup", Verb.CONTINUE, command) == DONE
    assert gateway.told == [Call("backup", "continue", command)]


async def test_a_refusal_is_raised_as_it_is() -> None:
    client, _ = client_of(
        backup=FakeWorkflow("Plan", {"restart": Refused.of(Code.NOT_FOUND, "Phase x not found")})
    )
    with pytest.raises(Refused, match="Phase x not found"):
        await client.command("backup", Verb.RESTART, Command(phase="x"))


async def test_a_plan_that_ends_over_a_command_has_taken_it() -> None:
    client, _ = client_of(backup=FakeWorkflow("Plan", {"force_complete": EndedBeforeAnswer()}))
    outcome = await client.command("backup", Verb.FORCE_COMPLETE, Command())
    assert (http_code(outcome), outcome.changed) == (202, True)


@pytest.mark.parametrize(
    "verb", [Verb.STOP, Verb.CONTINUE, Verb.INTERRUPT, Verb.FORCE_COMPLETE], ids=str
)
async def test_a_complete_plan_is_past_commands(verb: Verb) -> None:
    client, gateway = client_of(backup=own_plan())
    outcome = await client.command("backup", verb, Command())
    assert (http_code(outcome), outcome.changed) == (208, False)
    assert gateway.told == []


@pytest.mark.parametrize("ended", [Ended.TERMINATED, Ended.CANCELED, Ended.FAILED])
async def test_a_plan_that_was_cut_short_says_what_would_help(ended: Ended) -> None:
    client, _ = client_of(backup=own_plan(ended))
    with pytest.raises(Refused, match=f"{ended.clause}.*start or restart it") as raised:
        await client.command("backup", Verb.CONTINUE, Command())
    assert raised.value.refusal.code == Code.NOT_RUNNING


@pytest.mark.parametrize("command", [Command(phase="rest"), Command(phase="rest", step="nap")])
async def test_only_the_whole_of_an_ended_plan_can_be_restarted(command: Command) -> None:
    client, _ = client_of(backup=own_plan())
    with pytest.raises(Refused, match="omit phase and step") as raised:
        await client.command("backup", Verb.RESTART, command)
    assert raised.value.refusal.code == Code.NOT_APPLICABLE


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
            return result.model_validate({"result": "already", "message": "it is running"})
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
    with pytest.raises(Refused, match="was never started; start it first") as raised:
        await client.command("hello/backup", Verb.INTERRUPT, Command())
    assert raised.value.refusal.code == Code.NOT_RUNNING


async def test_start_of_an_ended_own_plan_is_a_new_run_of_the_old_input() -> None:
    client, gateway = client_of(backup=own_plan())
    command = Command(parameters={"LABEL": "new"}, reason="again", by="me")
    assert http_code(await client.command("backup", Verb.START, command)) == 200
    [call] = gateway.told
    assert isinstance(call.argument, PlanInput)
    assert (call.to, call.name) == ("backup", "start")
    assert call.argument.phases == BACKUP.phases
    assert call.argument.arguments == {"LABEL": "new"}
    assert not call.argument.interrupted
    assert call.argument.engine is not None
    assert call.argument.engine.state is None
    kept, new = call.argument.engine.log.entries
    assert (kept.verb, kept.via) == ("stop", "signal")
    assert (new.verb, new.by, new.reason, http_code(new.outcome)) == ("start", "me", "again", 200)


async def test_restart_of_an_ended_own_plan_keeps_its_arguments() -> None:
    client, gateway = client_of(backup=own_plan(Ended.TERMINATED))
    await client.command("backup", Verb.RESTART, Command())
    argument = gateway.told[0].argument
    assert isinstance(argument, PlanInput)
    assert argument.arguments == {"LABEL": "old"}


async def test_restart_of_an_ended_own_plan_takes_no_parameters() -> None:
    client, gateway = client_of(backup=own_plan(Ended.TERMINATED))
    command = Command(parameters={"LABEL": "new"})
    with pytest.raises(CommandRefused) as of_open_plan:
        refuse_parameters(Verb.RESTART, command)
    with pytest.raises(Refused) as raised:
        await client.command("backup", Verb.RESTART, command)
    assert raised.value.refusal == of_open_plan.value.refusal
    assert gateway.told == []


async def test_wrong_arguments_start_nothing() -> None:
    client, gateway = client_of(backup=own_plan())
    with pytest.raises(Refused, match=r"parameters\.LABEL: does not match \[a-z\]\+") as raised:
        await client.command("backup", Verb.START, Command(parameters={"LABEL": "X"}))
    assert raised.value.refusal.code == Code.INVALID
    assert [one.field for one in raised.value.reasons] == ["parameters.LABEL"]
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
    assert (call.argument.by, call.argument.reason) == ("me", "asked for")
    assert call.argument.engine is None


async def test_a_superseded_plan_is_shown_so() -> None:
    result = PlanResult(status=Status.IN_PROGRESS, view=plan(Status.IN_PROGRESS), superseded=True)
    client, _ = client_of(backup=FakeWorkflow("Plan", ended=Ended.COMPLETED, result=result))
    run = await client.show("backup")
    assert (run.superseded, run.at_rest, run.cut_short) == (True, False, "superseded")


async def test_run_of_an_id_that_runs_is_refused() -> None:
    client, _ = client_of(backup=own_plan(None))
    with pytest.raises(Refused, match=r"'backup' is running.*another --id") as raised:
        await client.run(BACKUP, arguments={"LABEL": "a"})
    assert raised.value.refusal.code == Code.NAME_TAKEN


async def test_run_tells_all_problems() -> None:
    client, gateway = client_of()
    with pytest.raises(SpecError) as raised:
        await client.run(BACKUP.but(phases=()), arguments={"LABLE": "a"})
    assert [problem.field for problem in raised.value.reasons] == [
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
    workflow = FakeWorkflow(
        "Plan", {"status": Refused.of(Code.FAILED, "no handler")}, ended=Ended.FAILED
    )
    client, _ = client_of(backup=workflow)
    with pytest.raises(Unreadable, match="plan 'backup' has failed: the fake has no answer"):
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
    client, _ = client_of(
        service__hello=FakeWorkflow(
            "Service", {"status": service_status("hello"), "restart_pod": EndedBeforeAnswer()}
        )
    )
    with pytest.raises(Refused, match="'hello' ended before it answered restart_pod") as raised:
        await client.command_pod("hello", PodVerb.RESTART, "web-0")
    assert raised.value.refusal.code == Code.NOT_RUNNING


def waits(step: str, pod: str) -> Explanations:
    one = Explanation(
        phase="p", step=step, status=Status.PREPARED, cause=Cause.OFFER, text="waits", pod=pod
    )
    return Explanations(status=Status.IN_PROGRESS, explanations=(one,))


def waiting(notify: str, pod: str, index: int = 0) -> WaitingView:
    requirement = Requirement(owner="service/hello", pod=pod, index=index, notify=notify)
    refusal = does_not_fit("a1", [("cpus", "too few")])
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
    assert "start or restart it" in one.text


async def test_explain_of_what_a_plan_that_was_cut_short_has_not() -> None:
    view = plan(Status.PENDING, phase("hello", "serial", Status.PENDING))
    workflow = FakeWorkflow("Plan", {"status": view}, ended=Ended.TERMINATED)
    client, _ = client_of(backup=workflow)
    with pytest.raises(Refused, match="phase helo not found; did you mean hello") as raised:
        await client.explain("backup", "helo")
    assert raised.value.refusal.code == Code.NOT_FOUND
    assert (await client.explain("backup", "hello")).explanations
