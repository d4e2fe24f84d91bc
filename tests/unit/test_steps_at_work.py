"""What is told of work that steps have given to workers."""

from datetime import UTC, datetime, timedelta

import pytest

from temporal_plans.cli.explaining import explanation_lines
from temporal_plans.client.steps_at_work import with_work
from temporal_plans.domain.explain import Cause, Explanation, Explanations, GivenWork
from temporal_plans.domain.status import Status
from unit.fake_gateway import FakeGateway

NOW = datetime.now(UTC)
WAITS = GivenWork(type="dump", queue="ops", since=NOW)
RUNS = GivenWork(type="dump", queue="ops", since=NOW, taken=True, worker="7@host")
LATER = GivenWork(type="dump", queue="ops", since=NOW, attempt=3, again=NOW + timedelta(hours=1))


def at_work(*steps: str, phase: str = "p") -> list[Explanation]:
    return [
        Explanation(
            phase=phase, step=step, status=Status.STARTING, cause=Cause.RUNNING, text="at work"
        )
        for step in steps
    ]


async def told(
    explanations: list[Explanation], work: dict[str, list[GivenWork]]
) -> list[tuple[str, Cause, tuple[GivenWork, ...]]]:
    asked = Explanations(status=Status.IN_PROGRESS, explanations=tuple(explanations))
    answer = await with_work(FakeGateway(work=dict(work)), "backup", asked)
    return [(one.step, one.cause, one.work) for one in answer.explanations]


@pytest.mark.parametrize(
    ("work", "cause"),
    [
        (WAITS, Cause.WORKER),
        (RUNS, Cause.RUNNING),
        (LATER, Cause.RUNNING),
        (LATER.but(again=NOW - timedelta(seconds=1)), Cause.WORKER),
        (WAITS.but(paused=True), Cause.RUNNING),
    ],
)
async def test_a_step_waits_for_a_worker_when_none_has_taken_its_work(
    work: GivenWork, cause: Cause
) -> None:
    found = await told(at_work("a"), {"backup/p/a": [work]})
    assert found == [("a", cause, (work,))]


async def test_only_of_what_is_at_work() -> None:
    done = Explanation(
        phase="p", step="a", status=Status.COMPLETE, cause=Cause.COMPLETE, text="is complete"
    )
    assert await told([done], {"backup/p/a": [WAITS]}) == [("a", Cause.COMPLETE, ())]


async def test_a_phases_work_is_that_of_its_only_inline_step() -> None:
    found = await told(at_work("a"), {"backup/p": [WAITS]})
    assert found == [("a", Cause.WORKER, (WAITS,))]


async def test_a_step_with_a_workflow_of_its_own_has_no_part_in_its_phases_work() -> None:
    found = await told(at_work("a"), {"backup/p": [WAITS], "backup/p/a": []})
    assert found == [("a", Cause.RUNNING, ())]


async def test_of_several_inline_steps_workflows_are_told_apart_and_activities_are_not() -> None:
    child = GivenWork(type="Sweep", id="backup/p/b/Sweep", queue="ops", since=NOW)
    found = await told(at_work("a", "b"), {"backup/p": [WAITS, child]})
    assert found == [
        ("a", Cause.RUNNING, ()),
        ("b", Cause.WORKER, (child,)),
        ("", Cause.WORKER, (WAITS,)),
    ]


MINUTES = timedelta(minutes=2, seconds=5)


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (RUNS, "activity dump runs for 2m 05s on worker 7@host"),
        (
            RUNS.but(attempt=2, failure="disk full"),
            "activity dump runs for 2m 05s on worker 7@host, attempt 2; before that: disk full",
        ),
        (
            GivenWork(type="Sweep", id="w", queue="ops", since=NOW, taken=True),
            "workflow Sweep (w) runs for 2m 05s",
        ),
        (LATER.but(failure="disk full"), "activity dump failed: disk full; attempt 3 in 57m 55s"),
        (
            WAITS,
            "activity dump waits for 2m 05s for a worker on task queue ops; there is none",
        ),
        (
            WAITS.but(asked=NOW),
            "activity dump waits for 2m 05s for a worker on task queue ops; "
            "none has asked for 2m 05s",
        ),
        (
            WAITS.but(asked=NOW + MINUTES),
            "activity dump waits for 2m 05s for a worker on task queue ops",
        ),
        (WAITS.but(paused=True, attempt=2), "activity dump is paused, attempt 2"),
    ],
)
def test_the_line_beneath_a_step(work: GivenWork, line: str) -> None:
    [one] = at_work("a")
    explained = Explanations(status=Status.STARTING, explanations=(one.but(work=(work,)),))
    lines = explanation_lines("backup", explained, now=NOW + MINUTES)
    assert [said.plain for said in lines[2:]] == [f"    {line}"]
