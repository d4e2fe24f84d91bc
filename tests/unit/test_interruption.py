"""Runs whose turns take longer than the SDK gives them (worker.interruption)."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance

from temporal_plans.worker import interruption


def _act(kind: str) -> WorkflowActivation:
    act = WorkflowActivation(run_id="r")
    getattr(act.jobs.add(), kind).SetInParent()
    return act


TURN, FORGET = _act("signal_workflow"), _act("remove_from_cache")


class Run(WorkflowInstance):
    """A run whose turns do as they are told; ``stuck`` when it has tasks that nobody wakes."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.stuck = False
        self.forgotten = 0
        self._work = work
        self._thread: int | None = None
        interruption.contain(self)

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if act is FORGET:
            if self.stuck:
                raise RuntimeError("1 tasks remain")
            assert self._thread is None, "torn down within a turn"
            self.forgotten += 1
        else:
            self._thread = threading.get_ident()
            self._work()
            self._thread = None
        return WorkflowActivationCompletion()

    def get_thread_id(self) -> int | None:
        return self._thread

    get_info = get_serialization_context = get_external_store_context = None  # type: ignore[assignment]


class Work:
    """Goes on until it is told to end, idly or not."""

    def __init__(self, *, busy: bool) -> None:
        self._busy = busy
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        while not self.end.is_set():
            if not self._busy:
                self.end.wait(60)


@contextmanager
def in_a_turn(run: Run, work: Work) -> Generator[None]:
    with ThreadPoolExecutor(1) as threads:
        turn = threads.submit(run.activate, TURN)
        assert work.begun.wait(60)
        try:
            yield
        finally:
            work.end.set()
            turn.result(60)


def _until_it_may_be_interrupted(run: Run) -> int:
    deadline = time.monotonic() + 60
    while (thread := run.get_thread_id()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return thread


def test_a_turn_that_gets_no_processor_is_not_interrupted() -> None:
    work = Work(busy=False)
    run = Run(work)
    with in_a_turn(run, work):
        time.sleep(2 * interruption.WORKED)
        assert run.get_thread_id() is None


def test_a_turn_that_loops_is_interrupted() -> None:
    work = Work(busy=True)
    run = Run(work)
    with in_a_turn(run, work):
        assert _until_it_may_be_interrupted(run) != threading.get_ident()
    assert run.get_thread_id() is None


def test_a_run_is_forgotten_between_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interruption, "IN_A_TURN", 0.1)
    work = Work(busy=False)
    run = Run(work)
    with in_a_turn(run, work), pytest.raises(interruption.InATurnError, match="has not ended"):
        run.activate(FORGET)
    run.activate(FORGET)
    assert run.forgotten == 1


def test_only_a_run_that_was_interrupted_is_forgotten_with_tasks_left() -> None:
    work = Work(busy=True)
    run = Run(work)
    run.stuck = True
    with in_a_turn(run, work):
        pass
    with pytest.raises(RuntimeError, match="1 tasks remain"):
        run.activate(FORGET)
    work.end.clear()
    with in_a_turn(run, work):
        _until_it_may_be_interrupted(run)
    assert run.activate(FORGET) == WorkflowActivationCompletion()
