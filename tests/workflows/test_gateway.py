"""The gateway over a real server: how what is missing, closed, silent and refused comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import activity, workflow
from temporalio.client import (
    Client,
    ScheduleHandle,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryRejectedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from markers import marked
from pauses import PATIENCE, until
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.client.errors import AgentUnreachable, Refused, Unreadable, WorkerUnreachable
from temporal_plans.client.temporal.connection import AnswerLostError, ServerUnreachableError
from temporal_plans.client.temporal.deadlines import Deadlines
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.client.temporal.schedules import ScheduleRequest, Timetable
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsOpen,
)
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError
from temporal_plans.messages.schedules import ScheduledPlan

pytestmark = pytest.mark.cached("its workflows are no plans")


class Note(Value):
    text: str = ""


class Other(Value):
    number: int


@workflow.defn
class Notebook:
    """Answers, refuses, ends and fails as it is told."""

    def __init__(self) -> None:
        self._end = ""
        self._so_far = "so far"

    @workflow.run
    async def run(self, first: Note) -> Note:
        await workflow.wait_condition(lambda: bool(self._end))
        if self._end == "go on":
            workflow.continue_as_new(first)
        if self._end == "fail":
            raise ApplicationError("the pen is dry")
        return Note(text=f"{first.text} {self._end}")

    @workflow.query
    def read(self) -> Note:
        return Note(text=self._so_far)

    @workflow.query
    def broken(self) -> Note:
        raise ValueError("torn out")

    @workflow.update
    async def tear(self, number: Note) -> Note:
        raise refusal_error(_missing(number))

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def ponder(self, _: Note) -> Note:
        self._so_far = "pondering"
        await workflow.sleep(3600)
        return Note(text="well")

    @workflow.update
    async def add(self, word: Note) -> Note:
        self._so_far += word.text
        return Note(text=self._so_far)

    @workflow.update(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def end(self, how: Note) -> Note:
        self._end = how.text
        if how.text == "before the answer":
            await workflow.sleep(3600)
        return Note(text="ended")

    @end.validator
    def _may_end(self, how: Note) -> None:
        if how.text == "never":
            raise ValueError("it must end; say how")


def _missing(number: Note) -> Refusal:
    problem = "there is no such page"
    reason = Reason(field="page", problem=problem, value=number.text, fix="use 1 to 9")
    return Refusal(code=Code.NOT_FOUND, reasons=(reason,))


@activity.defn(name="read_log")
async def read_log(note: Note) -> Note:
    if note.text == "unknown":
        raise ApplicationError("no such task", non_retryable=True)
    if note.text == "refused":
        raise refusal_error(_missing(note))
    return Note(text=f"read {note.text}")


QUEUE = "gateway-test"


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[TemporalGateway]:
    """A gateway with the deadlines of a test's marker ``deadlines``, or with the usual ones."""
    deadlines = Deadlines(**marked(request, "deadlines"))
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Notebook],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield TemporalGateway(client, task_queue=QUEUE, deadlines=deadlines)


async def opened(gateway: TemporalGateway) -> str:
    notebook = f"notebook-{uuid4()}"
    await gateway.start("Notebook", notebook, Note(text="begun"), summary="a notebook")
    return notebook


async def ended(gateway: TemporalGateway, how: str = "well") -> str:
    notebook = await opened(gateway)
    await gateway.update(notebook, "end", Note(text=how), Note)
    await until(lambda: gateway.describe(notebook), lambda run: run.ended)
    return notebook


async def test_an_open_workflow(gateway: TemporalGateway) -> None:
    notebook = await opened(gateway)
    assert (await gateway.query(notebook, "read", Note, open_only=True)).text == "so far"
    assert (await gateway.describe(notebook)).ended is None
    assert (await gateway.input_of(notebook, Note)).text == "begun"
    with pytest.raises(WorkflowIsOpen):
        await gateway.start("Notebook", notebook, Note())


async def test_a_closed_workflow(gateway: TemporalGateway) -> None:
    notebook = await ended(gateway)
    with pytest.raises(WorkflowIsClosed) as raised:
        await gateway.query(notebook, "read", Note, open_only=True)
    assert raised.value.ended is Ended.COMPLETED
    assert (await gateway.query(notebook, "read", Note)).text == "so far"
    assert (await gateway.result_of(notebook, Note)).text == "begun well"
    assert (await gateway.describe(notebook)).ended is Ended.COMPLETED
    with pytest.raises(WorkflowIsClosed):
        await gateway.update(notebook, "end", Note(), Note)


async def test_a_query_that_meets_the_end_of_a_run_is_answered_by_the_next_one(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server rejects it then, as it does for a workflow that is closed."""
    notebook = await opened(gateway)
    query: Any = vars(WorkflowHandle)["query"]
    statuses = [WorkflowExecutionStatus.CONTINUED_AS_NEW]

    async def rejected(*args: Any, **keywords: Any) -> Any:
        if statuses:
            raise WorkflowQueryRejectedError(statuses.pop())
        return await query(*args, **keywords)

    monkeypatch.setattr(WorkflowHandle, "query", rejected)
    assert (await gateway.query(notebook, "read", Note, open_only=True)).text == "so far"
    statuses.append(WorkflowExecutionStatus.TERMINATED)
    with pytest.raises(WorkflowIsClosed):
        await gateway.query(notebook, "read", Note, open_only=True)


async def test_a_failed_workflow_tells_why(gateway: TemporalGateway) -> None:
    notebook = await ended(gateway, "fail")
    assert (await gateway.describe(notebook)).ended is Ended.FAILED
    with pytest.raises(Unreadable, match="the pen is dry"):
        await gateway.result_of(notebook, Note)


async def test_no_such_workflow(gateway: TemporalGateway) -> None:
    for call in (
        gateway.describe("none"),
        gateway.query("none", "read", Note),
        gateway.update("none", "end", Note(), Note),
        gateway.input_of("none", Note),
        gateway.result_of("none", Note),
    ):
        with pytest.raises(NoSuchWorkflow):
            await call


async def test_refusals_come_as_they_were_written(gateway: TemporalGateway) -> None:
    notebook = await opened(gateway)
    with pytest.raises(Refused, match=r"^it must end; say how$"):
        await gateway.update(notebook, "end", Note(text="never"), Note)
    with pytest.raises(Refused, match="torn out"):
        await gateway.query(notebook, "broken", Note)
    with pytest.raises(Refused, match="known queries"):
        await gateway.query(notebook, "raed", Note)


async def test_refusals_are_values(gateway: TemporalGateway) -> None:
    notebook, page = await opened(gateway), Note(text="12")
    with pytest.raises(Refused, match=r"^page: there is no such page \(found .*12") as raised:
        await gateway.update(notebook, "tear", page, Note)
    assert raised.value.refusal == _missing(page)
    assert isinstance(raised.value, RefusedError)
    with pytest.raises(Refused) as raised:
        await gateway.query(notebook, "broken", Note)
    assert raised.value.refusal == Refusal.of(Code.FAILED, "torn out")


async def test_an_end_before_the_answer(gateway: TemporalGateway) -> None:
    notebook = await opened(gateway)
    with pytest.raises(EndedBeforeAnswer):
        await gateway.update(notebook, "end", Note(text="before the answer"), Note)


async def test_an_answer_of_another_shape(gateway: TemporalGateway) -> None:
    notebook = await opened(gateway)
    with pytest.raises(Unreadable, match="check that the worker has the same version"):
        await gateway.query(notebook, "read", Other)
    with pytest.raises(Unreadable, match=f"the input of '{notebook}' can't be read"):
        await gateway.input_of(notebook, Other)


async def test_start_and_update_starts_only_what_is_not_open(gateway: TemporalGateway) -> None:
    notebook = f"notebook-{uuid4()}"
    with pytest.raises(Refused, match="it must end"):
        await gateway.start_and_update("Notebook", notebook, Note(text="never"), "end", Note)
    answer = await gateway.start_and_update("Notebook", notebook, Note(text="x"), "end", Note)
    assert answer.text == "ended"
    assert (await gateway.input_of(notebook, Note)).text == "never"


async def test_the_list_has_one_run_of_each_workflow(gateway: TemporalGateway) -> None:
    notebook = await ended(gateway)
    await gateway.start("Notebook", notebook, Note())
    query = f"WorkflowId = '{notebook}'"
    await until(  # visibility follows a moment later
        lambda: gateway.list(query, 10), lambda runs: [run.ended for run in runs] == [None]
    )


async def test_without_a_worker(client: Client) -> None:
    brief = Deadlines(answer=timedelta(seconds=0.5), accept=timedelta(seconds=0.5))
    gateway = TemporalGateway(client, task_queue=f"nobody-{uuid4()}", deadlines=brief)
    notebook = await opened(gateway)
    with pytest.raises(WorkerUnreachable, match=f"no worker answers for '{notebook}'"):
        await gateway.query(notebook, "read", Note)
    with pytest.raises(WorkerUnreachable, match="may still be carried out"):
        await gateway.update(notebook, "end", Note(text="x"), Note)


@pytest.mark.deadlines(completion=timedelta(seconds=0.5))
async def test_a_command_that_is_under_way_for_too_long(gateway: TemporalGateway) -> None:
    notebook = await opened(gateway)
    with pytest.raises(WorkerUnreachable, match="may still be carried out"):
        await gateway.update(notebook, "ponder", Note(), Note)


async def test_a_question_that_is_given_up(client: Client) -> None:
    """The SDK answers a cancellation with an error of its own; it must stay one."""
    gateway = TemporalGateway(client, task_queue=f"nobody-{uuid4()}")
    notebook = await opened(gateway)
    for question in (
        gateway.update(notebook, "end", Note(text="x"), Note),
        gateway.query(notebook, "read", Note),
        gateway.result_of(notebook, Note),
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await question


async def test_an_agents_activity(client: Client) -> None:
    gateway = TemporalGateway(client)
    timeout = timedelta(seconds=PATIENCE)
    agent, queue = f"a-{uuid4()}", f"q-{uuid4()}"
    async with Worker(client, task_queue=queue, activities=[read_log]):
        asked = gateway.ask_agent(agent, queue, "read_log", Note(text="x"), Note, timeout=timeout)
        answer = await asked
        assert answer.text == "read x"
        unknown = Note(text="unknown")
        with pytest.raises(Refused, match=f"agent '{agent}': no such task") as raised:
            await gateway.ask_agent(agent, queue, "read_log", unknown, Note, timeout=timeout)
        assert raised.value.refusal.code == Code.FAILED
        refused = Note(text="refused")
        with pytest.raises(Refused, match=f"agent '{agent}': page: there is no") as raised:
            await gateway.ask_agent(agent, queue, "read_log", refused, Note, timeout=timeout)
        assert raised.value.refusal == _missing(refused).but(subject=f"agent '{agent}'")


async def test_an_absent_agent(client: Client) -> None:
    gateway = TemporalGateway(client)
    soon = timedelta(seconds=0.2)
    with pytest.raises(AgentUnreachable, match=r"agent 'gone' did not answer within 0\.2 s"):
        await gateway.ask_agent("gone", "of gone", "read_log", Note(), Note, timeout=soon)


class Wire:
    """A way to the server that is cut when it is left."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._host, self._port = host, int(port)
        self._ends: list[asyncio.StreamWriter] = []
        self._address = ""

    async def __aenter__(self) -> "Wire":
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self._address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for end in self._ends:
            end.transport.abort()

    async def client(self, like: Client) -> Client:
        return await Client.connect(self._address, data_converter=like.data_converter)

    async def _connect(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection(self._host, self._port)
        self._ends += [back, forth]
        await asyncio.gather(_pass_on(near, forth), _pass_on(far, back))


async def _pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            to.write(data)
            await to.drain()


async def test_a_connection_that_breaks_under_a_command(
    client: Client, gateway: TemporalGateway
) -> None:
    """Nobody knows what becomes of it, so it must not read as refused."""
    brief = Deadlines(lost_answer=timedelta(seconds=0.6))
    notebook = await opened(gateway)
    async with Wire(client.service_client.config.target_host) as wire:
        far = TemporalGateway(await wire.client(client), task_queue=QUEUE, deadlines=brief)
        asked = asyncio.create_task(far.update(notebook, "ponder", Note(), Note))
        await until(
            lambda: gateway.query(notebook, "read", Note), lambda note: note.text == "pondering"
        )
        await asyncio.sleep(0.2)  # nobody says when its answer is waited for
    with pytest.raises(ServerUnreachableError, match="ponder command may have been carried out"):
        await asked


LONG_BEFORE = pytest.mark.deadlines(clock_skew=timedelta(hours=-1))
"""As if every run had been there for an hour when a command was sent."""


def lose(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *, arrives: bool, code: str = "UNKNOWN"
) -> None:
    """The first answer is lost, after the call was carried out or before it got there."""
    call = getattr(owner, name)
    lost = False

    async def lossy(*args: Any, **keywords: Any) -> Any:
        nonlocal lost
        if lost:
            return await call(*args, **keywords)
        lost = True
        if arrives:
            await call(*args, **keywords)
        raise RPCError("transport error", RPCStatusCode[code], b"")

    monkeypatch.setattr(owner, name, lossy)


@pytest.mark.parametrize("code", ["UNKNOWN", "INTERNAL", "UNAVAILABLE"])
async def test_a_command_whose_answer_is_lost_is_carried_out_once(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """So says the SDK when a server goes away at a bad moment, and has done what it was asked."""
    notebook = await opened(gateway)
    lose(monkeypatch, WorkflowHandle, "start_update", arrives=True, code=code)
    assert (await gateway.update(notebook, "add", Note(text=", x"), Note)).text == "so far, x"
    assert (await gateway.query(notebook, "read", Note)).text == "so far, x"


@LONG_BEFORE
async def test_a_command_that_was_lost_is_given_again(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has been there for long, so no other one can have got it."""
    notebook = await opened(gateway)
    lose(monkeypatch, WorkflowHandle, "start_update", arrives=False)
    assert (await gateway.update(notebook, "add", Note(text=", x"), Note)).text == "so far, x"
    assert (await gateway.query(notebook, "read", Note)).text == "so far, x"


async def test_a_command_that_a_run_took_before_it_continued_as_new(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = await opened(gateway)
    first = (await gateway.describe(notebook)).run_id
    lose(monkeypatch, WorkflowHandle, "start_update", arrives=True)
    assert (await gateway.update(notebook, "end", Note(text="go on"), Note)).text == "ended"
    assert (await gateway.describe(notebook)).run_id != first
    assert (await gateway.describe(notebook)).ended is None


@LONG_BEFORE
async def test_a_command_for_a_run_that_has_closed_since(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not carried out, and reads as for every closed workflow."""
    notebook = await ended(gateway)
    lose(monkeypatch, WorkflowHandle, "start_update", arrives=False)
    with pytest.raises(WorkflowIsClosed):
        await gateway.update(notebook, "add", Note(text=", x"), Note)


async def test_a_command_that_an_earlier_run_may_have_got_is_not_given_again(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = await opened(gateway)
    lose(monkeypatch, WorkflowHandle, "start_update", arrives=False)
    with pytest.raises(
        AnswerLostError,
        match=r"gave no answer: transport error\. The add command may have been carried out",
    ):
        await gateway.update(notebook, "add", Note(text=", x"), Note)
    assert (await gateway.query(notebook, "read", Note)).text == "so far"


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_start_whose_answer_is_lost(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    lose(monkeypatch, Client, "start_update_with_start_workflow", arrives=arrives)
    notebook = f"notebook-{uuid4()}"
    note = Note(text=", x")
    answer = await gateway.start_and_update("Notebook", notebook, note, "add", Note)
    assert answer.text == "so far, x"
    assert (await gateway.query(notebook, "read", Note)).text == "so far, x"


async def test_a_change_of_a_schedule_whose_answer_is_lost(
    gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schedules carry out twice what is sent twice."""
    lose(monkeypatch, ScheduleHandle, "trigger", arrives=False)
    with pytest.raises(AnswerLostError, match="trigger command may have been carried out"):
        await gateway.schedules.trigger("nightly")


async def test_a_schedule_that_is_deleted_by_a_call_that_is_sent_twice(
    client: Client, gateway: TemporalGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the SDK does when the server goes away before it has answered."""
    order = ScheduleRequest(
        id=f"nightly-{uuid4()}",
        work=ScheduledPlan(service="web", plan="backup", schedule="nightly"),
        when=Timetable(cron=("0 3 * * *",)),
    )
    await gateway.schedules.create(order)
    delete = ScheduleHandle.delete

    async def twice(handle: ScheduleHandle) -> None:
        await delete(handle)
        await delete(handle)

    monkeypatch.setattr(ScheduleHandle, "delete", twice)
    await gateway.schedules.delete(order.id)
    with pytest.raises(NoSuchWorkflow):
        await gateway.schedules.delete(order.id)
