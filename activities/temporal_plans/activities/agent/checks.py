"""Health and readiness checks (reference 3.8): commands run next to a task, as its user.

A health check kills its task after enough failures in a row; a readiness check only says when it
passes for the first time.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from temporal_plans.activities.agent.supervision import ShimSpec
from temporal_plans.domain.service import HealthCheck, ReadinessCheck

_log = logging.getLogger(__name__)

_KEPT_OUTPUT = 1000
_SHORTEST_INTERVAL = 0.1


class CheckResult(NamedTuple):
    """``problem``: what to say of a failure, with the last of what the command printed."""

    passed: bool
    problem: str = ""


Check = Callable[[], Awaitable[CheckResult]]


async def run_check(cmd: str, spec: ShimSpec, timeout: float) -> CheckResult:
    """Runs a check once in the task's sandbox, environment and user; ``timeout`` 0 is no limit.

    OSError when no process can be made, which says nothing about the task.
    """
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        cmd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=spec.sandbox,
        env=spec.env,
        start_new_session=True,
        user=spec.identity.uid if spec.identity else None,
        group=spec.identity.gid if spec.identity else None,
        extra_groups=spec.identity.groups if spec.identity else None,
    )
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    reading = asyncio.create_task(tail.read())
    try:
        async with asyncio.timeout(timeout or None):
            code = await process.wait()
            await reading
    except TimeoutError:
        if process.returncode == 0:  # passed, but left something behind that holds its output
            return CheckResult(True)
        return CheckResult(False, _problem(f"took longer than {timeout:g} s", tail.text))
    finally:
        await _end(process, reading)
    return CheckResult(code == 0, "" if code == 0 else _problem(f"exit code {code}", tail.text))


async def unhealthy(check: HealthCheck, run: Check, started: float) -> str:
    """Returns, with the reason, when a task is to be killed for its health.

    ``started`` is the task's start in seconds of ``time.time``. The first check comes ``delay``
    after it; failures within ``grace-period`` of it don't count.
    """
    await asyncio.sleep(max(0.0, started + check.delay - time.time()))
    failures = 0
    while True:
        result = await _try(run)
        if result is not None:
            counts = not result.passed and time.time() >= started + check.grace_period
            failures = failures + 1 if counts else 0
            if failures >= check.max_consecutive_failures:
                return f"unhealthy: the health check failed {failures} times: {result.problem}"
        await asyncio.sleep(max(check.interval, _SHORTEST_INTERVAL))


async def ready(check: ReadinessCheck, run: Check, started: float) -> None:
    """Returns when the readiness check has passed."""
    await asyncio.sleep(max(0.0, started + check.delay - time.time()))
    while True:
        result = await _try(run)
        if result is not None and result.passed:
            return
        await asyncio.sleep(max(check.interval, _SHORTEST_INTERVAL))


async def _try(run: Check) -> CheckResult | None:
    try:
        return await run()
    except OSError as problem:  # out of processes, say: no reason to kill a task
        _log.warning("a check could not be run: %s", problem)
        return None


async def _end(process: asyncio.subprocess.Process, reading: "asyncio.Task[None]") -> None:
    """Kills what is left of a check. The group's number is safe: a member of it still lives."""
    if process.returncode is None or not reading.done():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading


def _problem(what: str, output: str) -> str:
    return f"{what}: {output}" if output else what


class _Tail:
    """Reads a stream to its end and keeps the last of it."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self._kept = b""

    async def read(self) -> None:
        while chunk := await self._stream.read(65536):
            self._kept = (self._kept + chunk)[-_KEPT_OUTPUT:]

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace").strip()
