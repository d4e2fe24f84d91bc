"""Activations that take longer than the SDK's deadlock timeout (worker.sdk.interruption)."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.worker.sdk import interruption
from temporal_plans.worker.sdk.interruption import Interruption
from unit.worker.sdk_kit import Scripted, activation, run_of

ACTIVATION, EVICTION = activation("signal_workflow"), activation("remove_from_cache")


class Working(Scripted):
    """Works in each activation; ``stuck`` when it has tasks that nothing wakes."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self.stuck = False
        self.evicted = 0
        self._work = work
        self._thread: int | None = None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        if act is EVICTION:
            if self.stuck:
                raise RuntimeError("1 tasks remain")
            assert self._thread is None, "evicted within an activation"
            self.evicted += 1
        else:
            self._thread = threading.get_ident()
            self._work()
            self._thread = None
        return WorkflowActivationCompletion()

    def get_thread_id(self) -> int | None:
        return self._thread


class Work:
    """Continues until its end is set, with or without using the CPU."""

    def __init__(self, *, busy: bool) -> None:
        self._busy = busy
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        while not self.end.is_set():
            if not self._busy:
                self.end.wait(60)


@contextmanager
def activated(run: Interruption, work: Work) -> Generator[None]:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run.activate, ACTIVATION)
        assert work.begun.wait(60)
        try:
            yield
        finally:
            work.end.set()
            running.result(60)


def _until_it_may_be_interrupted(run: Interruption) -> int:
    deadline = time.monotonic() + 60
    while (thread := run.get_thread_id()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return thread


def test_an_activation_that_gets_no_processor_is_not_interrupted() -> None:
    work = Work(busy=False)
    run = Interruption(Working(work), run_of())
    with activated(run, work):
        time.sleep(2 * interruption.CPU_LIMIT)
        assert run.get_thread_id() is None


def test_an_activation_that_loops_is_interrupted() -> None:
    work = Work(busy=True)
    run = Interruption(Working(work), run_of())
    with activated(run, work):
        assert _until_it_may_be_interrupted(run) != threading.get_ident()
    assert run.get_thread_id() is None


def test_a_run_is_evicted_between_activations() -> None:
    work = Work(busy=False)
    inner = Working(work)
    run = Interruption(inner, run_of(), eviction_timeout=0.1)
    with (
        activated(run, work),
        pytest.raises(interruption.ActivationRunningError, match="evict it later"),
    ):
        run.activate(EVICTION)
    run.activate(EVICTION)
    assert inner.evicted == 1


def test_only_a_run_that_was_interrupted_is_evicted_with_tasks_left() -> None:
    work = Work(busy=True)
    inner = Working(work)
    inner.stuck = True
    run = Interruption(inner, run_of())
    with activated(run, work):
        pass
    with pytest.raises(RuntimeError, match="1 tasks remain"):
        run.activate(EVICTION)
    work.end.clear()
    with activated(run, work):
        _until_it_may_be_interrupted(run)
    assert run.activate(EVICTION) == WorkflowActivationCompletion()
