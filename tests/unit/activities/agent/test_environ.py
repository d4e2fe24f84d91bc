"""The environment of another process: what it has, also while it replaces its program."""

import os
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import pytest

from pauses import PATIENCE
from temporal_plans.activities.agent.supervisor import environ
from temporal_plans.activities.agent.supervisor.environ import environ_of
from temporal_plans.activities.agent.supervisor.signs import sandbox_of

ATTEMPTS = 200  # one of 16 was without environment here, one of 6 beside busy processes


@contextmanager
def process(**env: str) -> Generator[int]:
    with subprocess.Popen(["sleep", "1000"], env=env) as started:
        try:
            yield started.pid
        finally:
            started.kill()


def never(pid: int) -> bool:
    return False


def test_a_process_that_replaces_its_program() -> None:
    """``Popen`` returns before the new program's environment is there."""
    for _ in range(ATTEMPTS):
        with process(A="b") as pid:
            assert environ_of(pid, time.monotonic() + PATIENCE) == b"A=b\0"


def test_the_sandbox_of_a_process_that_replaces_its_program() -> None:
    for _ in range(ATTEMPTS):
        with process(MESOS_SANDBOX="/s") as pid:
            assert sandbox_of(pid, time.monotonic() + PATIENCE) == "/s"


def test_a_process_without_environment() -> None:
    with process() as pid:
        assert environ_of(pid) == b""


def test_a_process_that_never_has_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that hides its arguments, such as a hostile task's, is not awaited for ever."""
    monkeypatch.setattr(environ, "_has_program", never)
    with process() as pid:
        began = time.monotonic()
        assert environ_of(pid) == b""
        assert environ_of(pid, time.monotonic() - 1) == b""
    assert time.monotonic() - began < 5


def test_a_process_that_has_ended() -> None:
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    with suppress(ProcessLookupError):  # of a zombie some kernels show nothing
        assert environ_of(ended.pid) == b""
    ended.wait()
    with pytest.raises(OSError, match="No such"):
        environ_of(ended.pid)
