"""The front process: it passes on signals and exit codes, and its death reaches the child."""

import os
import select
import signal
import subprocess
import sys

import pytest

_PROGRAM = """
import select, signal, sys, time
from temporal_plans.cli.front import behind_a_front
front = behind_a_front()
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("up", flush=True)
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
# By turns: a handler of Python's waits for the end of a call that it came just before.
while not select.select([front], [], [], 0.1)[0]:
    pass
print("front is gone", flush=True)
"""


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    front = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments], stdout=subprocess.PIPE, bufsize=0
    )
    assert line_of(front) == b"up\n"
    return front


def line_of(front: "subprocess.Popen[bytes]") -> bytes:
    assert front.stdout is not None
    assert select.select([front.stdout], [], [], 30)[0], "it says nothing"
    return front.stdout.readline()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_exit_code_is_the_childs(code: int) -> None:
    with started(str(code)) as front:
        assert front.wait(30) == code


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 7), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_signals_are_passed_on(number: signal.Signals, code: int) -> None:
    with started() as front:
        os.kill(front.pid, number)
        assert front.wait(30) == code


def test_the_child_hears_of_the_fronts_death() -> None:
    with started() as front:
        front.kill()
        assert line_of(front) == b"front is gone\n"
