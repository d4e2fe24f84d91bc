"""Boards: one service's whole story (the example of behaviour 2.6), carrying, and the cost of a
look."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from builders.boards import board_of, tell
from builders.clock import NOW
from builders.plans import phase_of, phase_spec, plan_spec, step_spec
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseBoard, PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Command, Verb, decide
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import BUILT_IN
from temporal_plans.domain.plans.strategies.record import Element
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import (
    StepState,
    TaskProgress,
    begun,
    completed,
    launched,
    prepared,
    reported,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

OFF = Backoff(enabled=False)


class Story:
    """The plan deploy of the example: one serial-canary phase web of three pods."""

    def __init__(self) -> None:
        steps = (
            step_spec(f"web-{i}:[app]", PodWork(pod="web", index=i, tasks=("app",)))
            for i in range(3)
        )
        self.board = board_of(phase_spec("web", *steps, strategy="serial-canary"))
        self.launches = 0

    @property
    def web(self) -> PhaseBoard:
        return self.board.phases[0]

    def tell(self, verb: Verb, phase: str = "") -> int:
        return http_code(tell(self.board, verb, phase))

    def no_offer(self, step: int) -> None:
        self.web.set(step, prepared(self.web.steps[step], "no offer fits"))

    def launch(self, step: int) -> None:
        assert step in self.web.candidates()
        self.launches += 1
        task = TaskProgress(name="app", goal=Goal.RUNNING, check=True)
        tasks = {f"app-{self.launches}": task}
        self.web.set(step, launched(self.web.steps[step], tasks, NOW))

    def say(self, step: int, state: TaskState, ready: bool | None = None) -> None:
        (task_id, task), *_ = self.web.steps[step].tasks.items()
        report = TaskStatus(
            task_id=task_id,
            name="app",
            state=state,
            sequence=task.sequence + 1,
            at=NOW,
            ready=ready,
        )
        self.web.set(step, reported(self.web.steps[step], report, OFF, NOW))

    def reads(self, steps: str, phase: Status, plan: Status) -> None:
        letters = {"W": "WAITING", "P": "PENDING", "PR": "PREPARED", "SG": "STARTING"}
        letters |= {"SD": "STARTED", "C": "COMPLETE"}
        assert [s.shown.value for s in self.web.steps] == [letters[s] for s in steps.split(",")]
        assert (self.web.status, self.board.status) == (phase, plan)


def test_the_timeline_of_the_example() -> None:
    story = Story()
    waiting, pending, in_progress = Status.WAITING, Status.PENDING, Status.IN_PROGRESS
    # 1: first install
    story.reads("W,W,P", waiting, waiting)
    # 2: continue of the plan changes nothing
    assert story.tell(Verb.CONTINUE) == 200
    story.reads("W,W,P", waiting, waiting)
    # 3: continue of the phase
    assert story.tell(Verb.CONTINUE, "web") == 200
    story.reads("P,W,P", pending, pending)
    # 4: capacity missing
    story.no_offer(0)
    story.reads("PR,W,P", in_progress, in_progress)
    assert story.tell(Verb.CONTINUE, "web") == 208
    # 5: capacity found
    story.launch(0)
    story.reads("SG,W,P", waiting, waiting)
    # 6: runs, no readiness result yet
    story.say(0, TaskState.RUNNING)
    story.reads("SD,W,P", waiting, waiting)
    ahead = decide(story.board, "svc/deploy", Verb.CONTINUE, Command(phase="web"))
    assert (http_code(ahead.outcome), ahead.outcome.changed) == (200, True)
    # 7: readiness passes
    story.say(0, TaskState.RUNNING, ready=True)
    story.reads("C,W,P", waiting, waiting)
    # 8: the canary is over
    assert story.tell(Verb.CONTINUE, "web") == 200
    story.reads("C,P,P", in_progress, in_progress)
    # 9: interrupted; a second one is told so
    assert story.tell(Verb.INTERRUPT, "web") == 200
    story.reads("C,P,P", waiting, waiting)
    assert story.tell(Verb.INTERRUPT, "web") == 208
    # 10
    assert story.tell(Verb.CONTINUE, "web") == 200
    story.reads("C,P,P", in_progress, in_progress)
    # 11: step 1 fails, with back-off off
    story.launch(1)
    story.say(1, TaskState.FAILED)
    story.reads("C,P,P", in_progress, in_progress)
    # 12: all complete
    for step in (1, 2):
        story.launch(step)
        story.say(step, TaskState.RUNNING, ready=True)
    story.reads("C,C,C", Status.COMPLETE, Status.COMPLETE)


def test_a_continue_in_advance_lets_the_serial_order_apply() -> None:
    """The example, row 6."""
    story = Story()
    story.tell(Verb.CONTINUE, "web")
    story.launch(0)
    story.say(0, TaskState.RUNNING)
    assert story.tell(Verb.CONTINUE, "web") == 200
    assert story.web.candidates() == [0]
    story.say(0, TaskState.RUNNING, ready=True)
    assert story.web.candidates() == [1]


# --- plans ----------------------------------------------------------------------------------------


def finish(board: PhaseBoard) -> None:
    for i, step in enumerate(board.steps):
        board.set(i, completed(begun(step, NOW), NOW))


def test_phases_that_depend_on_each_other() -> None:
    board = board_of(
        phase_of("schema", 1),
        phase_of("api", 1).but(depends_on=("schema",)),
        phase_of("web", 1).but(depends_on=("schema",)),
        phase_of("checks", 1).but(depends_on=("api", "web")),
        strategy="dependency",
    )
    assert board.candidates() == [0]
    finish(board.phases[0])
    assert board.candidates() == [1, 2]
    finish(board.phases[2])
    assert board.candidates() == [1]
    finish(board.phases[1])
    assert board.candidates() == [3]


def test_an_interrupted_phase_holds_a_serial_plan_and_not_a_parallel_one() -> None:
    for strategy, expected in (("serial", []), ("parallel", [1])):
        board = board_of(phase_of("a", 1), phase_of("b", 1), strategy=strategy)
        board.phases[0].set_interrupted(True)
        assert board.candidates() == expected


@pytest.mark.parametrize("strategy", ["max-parallel", "random"])
def test_phases_that_were_partly_complete_from_the_start_have_not_begun(strategy: str) -> None:
    """A configuration update: one phase at a time, though each has a step that needs nothing."""
    kept = PhaseState(steps={0: StepState(status=Status.COMPLETE)})
    board = PlanBoard(
        plan_spec(phase_of("a", 2), phase_of("b", 2), phase_of("c", 2), strategy=strategy),
        PlanState(phases={0: kept, 1: kept, 2: kept}),
        seed=3,
    )
    assert len(board.candidates()) == 1


def test_a_phase_in_the_bound_keeps_its_place_between_its_steps() -> None:
    board = board_of(phase_of("a", 2), phase_of("b", 2), strategy="max-parallel")
    board.phases[1].set(0, completed(begun(StepState(), NOW), NOW))
    assert board.candidates() == [1]


def test_times() -> None:
    board = PhaseBoard(phase_of("p", 2))
    later = NOW + timedelta(seconds=5)
    board.set(0, completed(begun(StepState(), NOW), NOW))
    assert (board.started, board.finished) == (NOW, None)
    board.set(1, completed(begun(StepState(), NOW), later))
    assert (board.started, board.finished) == (NOW, later)


def test_a_complete_plan_waits_for_nothing() -> None:
    board = board_of(phase_of("a", 1, "canary"))
    board.interrupted = True
    board.phases[0].set_interrupted(True)
    board.phases[0].set_gate(True)
    assert len(board.waits()) == 2
    finish(board.phases[0])
    assert board.waits() == ()


# --- carrying -------------------------------------------------------------------------------------


def test_a_board_is_carried_as_json_and_says_little_when_little_happened() -> None:
    spec = plan_spec(phase_of("a", 500), phase_of("b", 3, "canary"))
    board = PlanBoard(spec)
    board.phases[0].set(7, begun(StepState(), NOW))
    text = board.state.model_dump_json()
    assert len(text) < 300
    again = PlanBoard(spec, PlanState.model_validate_json(text))
    assert again.state == board.state
    assert again.phases[1].canary == (0, 1)
    assert again.phases[0].steps == board.phases[0].steps
    assert again.status is board.status


def test_a_canary_without_gates_is_carried_as_such() -> None:
    """Decided once: a phase that had nothing to do gets no gates when its steps are restarted."""
    spec = phase_of("p", 2, "canary")
    full = PhaseState(steps={i: StepState(status=Status.COMPLETE) for i in range(2)})
    state = PhaseBoard(spec, full).state
    again = PhaseState.model_validate_json(state.model_dump_json())
    assert again.canary == ()
    reset = again.but(steps={})
    assert PhaseBoard(spec, reset).candidates() == [0]


def test_set_says_whether_anything_changed() -> None:
    board = PhaseBoard(phase_of("p", 1))
    state = begun(StepState(), NOW)
    assert board.set(0, state)
    assert not board.set(0, begun(StepState(), NOW))
    assert not board.set(0, state)


# --- cost -----------------------------------------------------------------------------------------


def test_looking_at_a_plan_asks_only_the_phases_that_changed() -> None:
    """A plan's status is read after every change of any step: what a look costs must not grow with
    the steps of the phases that did not change."""
    calls = {"count": 0}

    def select(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
        calls["count"] += 1
        return [element for element in elements if element.eligible]

    spec = plan_spec(*(phase_of(f"p{i}", 5, "counted") for i in range(20)))
    board = PlanBoard(spec, strategies={**BUILT_IN, "counted": select})
    assert board.status is Status.PENDING
    assert calls["count"] == 20
    calls["count"] = 0
    for _ in range(3):
        assert (board.status, board.candidates()) == (Status.PENDING, [0])
    assert calls["count"] == 0
    board.phases[4].set(0, begun(StepState(), NOW))
    for _ in range(3):
        assert (board.status, board.candidates()) == (Status.PENDING, [0])
    assert board.phases[4].candidates() == [0, 1, 2, 3, 4]
    assert calls["count"] == 1
