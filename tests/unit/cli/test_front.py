"""The proxy process: it passes on signals and exit codes, and its death reaches the child."""

import os
import select
import signal
import subprocess
import sys

import pytest

_PROGRAM = """
import select, signal, sys, time
from temporal_plans.cli.processes.signal_proxy import fork_behind_proxy
proxy = fork_behind_proxy()
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("up", flush=True)
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
# By turns: a handler of Python's waits for the end of a call that it came just before.
while not select.select([proxy], [], [], 0.1)[0]:
    pass
print("proxy is gone", flush=True)
"""


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    proxy = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments], stdout=subprocess.PIPE, bufsize=0
    )
    assert line_of(proxy) == b"up\n"
    return proxy


def line_of(proxy: "subprocess.Popen[bytes]") -> bytes:
    assert proxy.stdout is not None
    assert select.select([proxy.stdout], [], [], 30)[0], "it says nothing"
    return proxy.stdout.readline()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_exit_code_is_the_childs(code: int) -> None:
    with started(str(code)) as proxy:
        assert proxy.wait(30) == code


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 7), (signal.SIGTERM, 128 + signal.SIGTERM)]
)
def test_signals_are_passed_on(number: signal.Signals, code: int) -> None:
    with started() as proxy:
        os.kill(proxy.pid, number)
        assert proxy.wait(30) == code


def test_the_child_hears_of_the_fronts_death() -> None:
    with started() as proxy:
        proxy.kill()
        assert line_of(proxy) == b"proxy is gone\n"
