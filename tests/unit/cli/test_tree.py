"""The tree: the text of behaviour 11.1, and what stands beside and under it."""

import pytest

from builders.plan_views import START, at, phase, plan, reference_plan, step
from temporal_plans.cli.terminal.tree import fitting, notes, tree
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView


def text(view: PlanView) -> str:
    return "\n".join(line.plain for line in tree(view))


def test_the_text_of_the_reference() -> None:
    run = PlanRun(reference_plan(errors=("something",)))
    lines = [*tree(run.view), *notes(run)]
    assert "\n".join(line.plain for line in lines) == (
        """\
deploy (serial strategy) (IN_PROGRESS)
├─ hello (serial strategy) (COMPLETE)
│  ├─ hello-0:[server] (COMPLETE)
│  └─ hello-1:[server] (COMPLETE)
└─ world (serial-canary strategy) (WAITING)
   ├─ world-0:[server] (WAITING)
   └─ world-1:[server] (WAITING)

Errors:
- something"""
    )


def test_without_errors_there_is_no_block_of_them() -> None:
    assert notes(PlanRun(reference_plan())) == []


def test_a_missing_strategy_is_unknown() -> None:
    view = plan(Status.COMPLETE).but(strategy="")
    assert text(view) == "deploy (<UNKNOWN> strategy) (COMPLETE)"


def test_control_characters_do_not_reach_the_terminal() -> None:
    bad = step("a\x1b[2J", Status.DELAYED, message="exit\x07\r")
    view = plan(Status.DELAYED, phase("p\x9b", "serial", Status.DELAYED, bad))
    shown = "".join(line.plain for line in tree(view, now=START))
    assert not set(shown) & {"\x1b", "\x07", "\r", "\x9b"}


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        pytest.param(
            step("s", Status.COMPLETE, started=at(0), finished=at(2.1)),
            "s (COMPLETE)  2.1s",
            id="took",
        ),
        pytest.param(
            step("s", Status.STARTING, started=at(0)), "s (STARTING)  1m 15s", id="so-far"
        ),
        pytest.param(
            step("s", Status.DELAYED, attempt=3, message="exit code 1", started=at(70)),
            "s (DELAYED)  5.0s, attempt 3  exit code 1",
            id="tried-again",
        ),
        pytest.param(step("s", Status.COMPLETE, forced=True), "s (COMPLETE)  forced", id="forced"),
        pytest.param(
            step("s", Status.COMPLETE, message="no agent fits"), "s (COMPLETE)", id="done-with-it"
        ),
        pytest.param(step("s", Status.PENDING), "s (PENDING)", id="nothing-to-say"),
    ],
)
def test_times_and_reasons(shown: object, line: str) -> None:
    view = plan(Status.IN_PROGRESS, phase("p", "serial", Status.IN_PROGRESS, shown))  # type: ignore[arg-type]
    assert tree(view, now=at(75))[-1].plain == f"   └─ {line}"


def test_a_standing_plan_with_nothing_to_do_counts_no_time() -> None:
    idle, at_work = (
        plan(status).but(started=at(0)) for status in (Status.COMPLETE, Status.DELAYED)
    )
    assert [tree(view, now=at(60))[0].plain for view in (idle, at_work)] == [
        "deploy (serial strategy) (COMPLETE)",
        "deploy (serial strategy) (DELAYED)  1m 00s",
    ]


def test_what_waits_is_told_under_the_tree() -> None:
    view = plan(Status.WAITING, waiting=("the plan is interrupted",))
    assert [line.plain for line in notes(PlanRun(view))] == [
        "",
        "Waiting:",
        "- the plan is interrupted",
    ]


def test_a_standing_plan_that_is_interrupted_says_so_also_when_it_has_nothing_to_do() -> None:
    view = plan(Status.COMPLETE, name="recovery", waiting=("the plan is interrupted",))
    assert [line.plain for line in notes(PlanRun(view))] == [
        "",
        "Waiting:",
        "- the plan is interrupted",
        "  it begins nothing new until it is continued: temporal plan continue recovery"
        " -s hello-world",
    ]


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (PlanRun(plan(Status.WAITING), Ended.TERMINATED), "was terminated before it was COMPLETE."),
        (PlanRun(plan(Status.WAITING), Ended.FAILED, "x"), "has failed before it was COMPLETE: x."),
        (PlanRun(plan(Status.WAITING), Ended.COMPLETED), "was stopped before it was COMPLETE."),
    ],
)
def test_an_early_end_is_told(run: PlanRun, told: str) -> None:
    assert notes(run)[-1].plain == f"The plan {told}"


def test_a_complete_plan_needs_no_notes() -> None:
    assert notes(PlanRun(plan(Status.COMPLETE), Ended.COMPLETED)) == []


def big(phases: int, steps: int) -> PlanView:
    """Every phase complete but the one in the middle, in which one step runs."""
    middle = phases // 2
    return plan(
        Status.IN_PROGRESS,
        *(
            phase(
                f"p{i}",
                "parallel",
                Status.IN_PROGRESS if i == middle else Status.COMPLETE,
                *(
                    step(
                        f"p{i}-s{k}",
                        Status.STARTING if (i, k) == (middle, steps // 2) else Status.COMPLETE,
                    )
                    for k in range(steps)
                ),
            )
            for i in range(phases)
        ),
    )


@pytest.mark.parametrize(("phases", "steps", "height"), [(3, 100, 20), (200, 5, 20), (2, 4, 11)])
def test_a_big_plan_fits_and_shows_what_moves(phases: int, steps: int, height: int) -> None:
    lines = [line.plain for line in fitting(big(phases, steps), now=START, height=height)]
    assert len(lines) <= height
    assert any(f"p{phases // 2} (parallel strategy) (IN_PROGRESS)" in line for line in lines)


def test_a_folded_phase_counts_what_is_not_shown() -> None:
    lines = [line.plain for line in fitting(big(3, 100), now=START, height=20)]
    assert "│  ├─ p1-s50 (STARTING)" in lines
    assert "│  └─ … 99 COMPLETE" in lines


def test_a_small_plan_is_shown_whole() -> None:
    view = reference_plan()
    assert fitting(view, now=START, height=7) == tree(view, now=START)


def test_a_halt_and_the_need_for_force_are_noted() -> None:
    view = plan(Status.ERROR).but(halted="step a of phase p is in error", reentrant=False)
    assert [line.plain for line in notes(PlanRun(view)) if line.plain] == [
        "Halted:",
        "- nothing more begins: step a of phase p is in error",
        "Not reentrant: restart and stop need --force.",
    ]
    assert notes(PlanRun(plan(Status.COMPLETE).but(reentrant=False), Ended.COMPLETED)) == []
