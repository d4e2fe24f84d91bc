"""What is told of the work that steps wait for."""

from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest

from builders.pools import agent_view
from temporal_plans.cli.terminal.explaining import explanation_lines
from temporal_plans.client.errors import Refused
from temporal_plans.client.reading.steps_at_work import needs_agents, with_agents, with_work
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanation, Explanations, PendingWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from unit.fake_gateway import FakeGateway

NOW = datetime.now(UTC)
WAITS = PendingWork(type="dump", task_queue="ops", since=NOW)
RUNS = PendingWork(type="dump", task_queue="ops", since=NOW, started=True, worker="7@host")
LATER = PendingWork(
    type="dump", task_queue="ops", since=NOW, attempt=3, next_attempt=NOW + timedelta(hours=1)
)
SWEEP = PendingWork(type="Sweep", workflow_id="nightly", task_queue="ops", since=NOW)
LAUNCH = PendingWork(type="launch", task_queue="queue-a1", since=NOW)
AT_A1 = LAUNCH.but(agent="a1")


def at_work(*steps: str, phase: str = "p") -> list[Explanation]:
    return [
        Explanation(
            phase=phase, step=step, status=Status.STARTING, cause=Cause.RUNNING, text="at work"
        )
        for step in steps
    ]


async def told(
    explanations: list[Explanation], work: dict[str, list[PendingWork]]
) -> list[tuple[str, Cause, tuple[PendingWork, ...]]]:
    asked = Explanations(status=Status.IN_PROGRESS, explanations=tuple(explanations))
    answer = await with_work(FakeGateway(work=dict(work)), "backup", asked)
    return [(one.step, one.cause, one.work) for one in answer.explanations]


@pytest.mark.parametrize(
    ("work", "cause"),
    [
        (WAITS, Cause.WORKER),
        (RUNS, Cause.RUNNING),
        (LATER, Cause.RUNNING),
        (LATER.but(next_attempt=NOW - timedelta(seconds=1)), Cause.WORKER),
        (WAITS.but(paused=True), Cause.RUNNING),
    ],
)
async def test_a_step_waits_for_a_worker_when_none_has_started_its_work(
    work: PendingWork, cause: Cause
) -> None:
    found = await told(at_work("a"), {"backup/p/a": [work]})
    assert found == [("a", cause, (work,))]


async def test_only_of_what_is_at_work() -> None:
    done = Explanation(
        phase="p", step="a", status=Status.COMPLETE, cause=Cause.COMPLETE, text="is complete"
    )
    [yet_to_begin] = [one.but(status=Status.PENDING) for one in at_work("b")]
    work = {"backup/p/a": [WAITS], "backup/p/b": [WAITS], "backup/p": [WAITS]}
    assert await told([done, yet_to_begin], work) == [
        ("a", Cause.COMPLETE, ()),
        ("b", Cause.RUNNING, ()),
    ]


async def test_what_inline_steps_wait_for_is_told_of_their_phase() -> None:
    """Also when one alone is asked about, for others may be at work."""
    for steps in (("a",), ("a", "b")):
        found = await told(at_work(*steps), {"backup/p": [WAITS, SWEEP]})
        assert found == [
            *((step, Cause.RUNNING, ()) for step in steps),
            ("", Cause.WORKER, (WAITS, SWEEP)),
        ]


async def test_a_phase_has_no_work_beside_that_of_steps_with_workflows_of_their_own() -> None:
    step = PendingWork(type="Step", workflow_id="backup/p/b", task_queue="plans", since=NOW)
    work = {"backup/p": [step], "backup/p/a": []}
    assert await told(at_work("a"), work) == [("a", Cause.RUNNING, ())]
    assert await told(at_work("b"), work) == [("b", Cause.RUNNING, ())]  # just over


@pytest.mark.parametrize(
    "error", [Refused.of(Code.FAILED, "not for you"), ServerUnreachableError("x", "y")]
)
async def test_it_is_left_out_when_it_can_not_be_had(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = FakeGateway()

    async def no(_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(gateway, "pending_work", no)
    asked = Explanations(status=Status.STARTING, explanations=tuple(at_work("a")))
    assert await with_work(gateway, "backup", asked) == asked


def test_an_agent_that_is_not_alive_is_named() -> None:
    [one] = at_work("a")
    asked = Explanations(status=Status.STARTING, explanations=(one.but(work=(LAUNCH, WAITS)),))
    assert needs_agents(asked)
    silent = agent_view("a1", AgentState.UNREACHABLE)
    [answer] = with_agents(asked, [silent, agent_view("a2", AgentState.LOST)]).explanations
    assert answer.work == (AT_A1.but(agent_state="UNREACHABLE"), WAITS)
    [answer] = with_agents(asked, [agent_view("a1", AgentState.ALIVE)]).explanations
    assert answer.work == (AT_A1, WAITS)
    there = agent_view("a2", AgentState.ALIVE, queue="queue-a1")
    assert with_agents(asked, [silent, there]) == asked


@pytest.mark.parametrize(
    ("queue", "needed"), [("queue-a1", True), ("ops", True), ("plans", False), ("", False)]
)
def test_only_work_on_other_queues_than_the_plans_own_may_be_an_agents(
    queue: str, needed: bool
) -> None:
    [one] = at_work("a")
    work = LAUNCH.but(task_queue=queue)
    asked = Explanations(status=Status.STARTING, explanations=(one.but(work=(work,)),))
    assert needs_agents(asked) == needed


MINUTES = timedelta(minutes=2, seconds=5)


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (RUNS, "activity dump runs for 2m 05s on worker 7@host"),
        (
            RUNS.but(attempt=2, last_failure="disk full"),
            "activity dump runs for 2m 05s on worker 7@host, attempt 2; "
            "the previous attempt failed: disk full",
        ),
        (SWEEP.but(started=True), "workflow Sweep (nightly) runs for 2m 05s"),
        (
            LATER.but(last_failure="disk full"),
            "activity dump failed: disk full; attempt 3 in 57m 55s",
        ),
        (
            WAITS,
            "activity dump waits for 2m 05s for a worker on task queue ops; "
            "no worker has polled it: none runs, or all are busy",
        ),
        (
            WAITS.but(task_queue="kubernetes/prod"),
            "activity dump waits for 2m 05s for a worker on task queue kubernetes/prod; no worker "
            "has polled it: none runs, or all are busy; `temporal plan worker --kubernetes prod` "
            "starts one",
        ),
        (
            WAITS.but(last_poll=NOW),
            "activity dump waits for 2m 05s for a worker on task queue ops; "
            "no worker has polled it for 2m 05s: none runs, or all are busy",
        ),
        (
            WAITS.but(last_poll=NOW + MINUTES),
            "activity dump waits for 2m 05s for a worker on task queue ops",
        ),
        (WAITS.but(task_queue=""), "activity dump waits for 2m 05s for a worker"),
        (
            WAITS.but(paused=True, attempt=2),
            "activity dump is paused, attempt 2; `temporal activity unpause` resumes it",
        ),
        (AT_A1, "activity launch waits for 2m 05s for agent a1; it has not polled for work"),
        (
            AT_A1.but(agent_state="UNREACHABLE"),
            "activity launch waits for 2m 05s for agent a1; the agent is UNREACHABLE",
        ),
    ],
)
def test_the_line_beneath_a_step(work: PendingWork, line: str) -> None:
    [one] = at_work("a")
    explained = Explanations(status=Status.STARTING, explanations=(one.but(work=(work,)),))
    lines = explanation_lines("backup", explained, now=NOW + MINUTES)
    assert [said.plain for said in lines[2:]] == [f"    {line}"]


def test_equal_lines_are_told_once() -> None:
    [one] = at_work("a")
    explained = Explanations(status=Status.STARTING, explanations=(one.but(work=(RUNS,) * 3),))
    lines = explanation_lines("backup", explained, now=NOW + MINUTES)
    assert [said.plain for said in lines[2:]] == [
        "    3 times: activity dump runs for 2m 05s on worker 7@host"
    ]
