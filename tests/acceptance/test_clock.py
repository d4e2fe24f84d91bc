"""What the drills' clocks do: they jump, and leave alone what a clock that is set leaves alone."""

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acceptance.clock import Clock, can_jump

pytestmark = pytest.mark.skipif(not can_jump(), reason="needs a C compiler, cc")

HOUR = 3600
WAIT = 0.05

_WAITS_AND_LOOKS = f"""
import ctypes, json, sys, time

class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

libc = ctypes.CDLL(None)
attributes, condition, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
libc.pthread_condattr_init(attributes)
libc.pthread_condattr_setclock(attributes, time.CLOCK_MONOTONIC)
libc.pthread_cond_init(condition, attributes)  # as Python's interpreter lock has it
libc.pthread_mutex_init(mutex, None)

def wait():
    now = time.monotonic_ns()
    due = Timespec(*divmod(now + int({WAIT} * 10**9), 10**9))
    libc.pthread_mutex_lock(mutex)
    while not libc.pthread_cond_timedwait(condition, mutex, ctypes.byref(due)):
        pass  # woken for no reason
    libc.pthread_mutex_unlock(mutex)

def passed(what, *arguments):
    before = time.monotonic()
    what(*arguments)
    return time.monotonic() - before

for _ in sys.stdin:
    waits = [passed(wait), passed(time.sleep, {WAIT})]
    print(json.dumps([time.time(), time.monotonic(), *waits]), flush=True)
"""


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[tuple[Clock, asyncio.subprocess.Process]]:
    clock = Clock(tmp_path / "one.clock")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _WAITS_AND_LOOKS),
        env={**os.environ, **clock.env},
        stdin=PIPE,
        stdout=PIPE,
    )
    yield clock, process
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


async def test_a_clock_that_jumps_leaves_waits_alone(
    process: tuple[Clock, asyncio.subprocess.Process],
) -> None:
    clock, program = process
    assert program.stdin is not None
    assert program.stdout is not None
    for ahead in (0, HOUR, -HOUR):
        clock.set(ahead)
        before = time.monotonic()
        program.stdin.write(b"look\n")
        wall, monotonic, *waits = json.loads(await program.stdout.readline())
        after = time.monotonic()
        assert abs(wall - time.time() - ahead) < HOUR / 2
        assert before <= monotonic <= after
        assert all(WAIT <= wait <= after - before for wait in waits)
