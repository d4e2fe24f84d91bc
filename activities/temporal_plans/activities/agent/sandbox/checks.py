"""Health and readiness checks (behaviour 3.8): commands run next to a task, as its user.

A health check kills its task after enough consecutive failures; a readiness check only reports its
first success, and until then why it fails.
"""

import asyncio
import contextlib
import logging
import math
import os
import resource
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from subprocess import SubprocessError
from typing import NamedTuple

from temporal_plans.activities.agent.sandbox.rlimits import can_raise_rlimits
from temporal_plans.activities.agent.supervisor.supervision import ShimSpec
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.services.spec import HealthCheck, ReadinessCheck

_log = logging.getLogger(__name__)

_OUTPUT_SIZE_LIMIT = 1000  # bytes
_CHECK_INTERVAL_MINIMUM = 0.1  # seconds

_GATE = 'read -r go && exec "$0" -c "$1" </dev/null'
"""The command waits until it has the limits of its task."""


_Limit = tuple[int, tuple[int, int]]
"""A limit's number; soft and hard, -1 for unlimited."""


class CheckResult(NamedTuple):
    """``problem``: the description of a failure, with the last output of the command, without
    values of secrets."""

    passed: bool
    problem: str = ""


Check = Callable[[], Awaitable[CheckResult]]

Report = Callable[[str], Awaitable[None]]
"""Reports why a check fails."""


class ReportPace(NamedTuple):
    """When failures of a readiness check are reported, in seconds: ``first`` after its first
    failure, because most tasks are not ready at once, then one each ``interval``. Each is a signal
    to the service and to the step."""

    first: float = 5.0
    interval: float = 30.0


_PACE = ReportPace()


async def run_check(cmd: str, spec: ShimSpec, timeout: float) -> CheckResult:
    """Run a check once in the task's sandbox, environment and user; ``timeout`` 0 is no limit.

    Raises OSError when no process can be created, and SubprocessError when it may not have its
    limits: both say nothing about the task.
    """
    limits = _limits(spec)
    own = bool(limits) and not can_raise_rlimits()
    process = await asyncio.create_subprocess_exec(
        *(spec.shell, "-c", _GATE, spec.shell, cmd),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=spec.sandbox,
        env=spec.env,
        start_new_session=True,
        user=spec.identity.uid if spec.identity else None,
        group=spec.identity.gid if spec.identity else None,
        extra_groups=spec.identity.groups if spec.identity else None,
        preexec_fn=partial(_set_limits, limits, 0) if own else None,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    tail = _OutputTail(process.stdout, Redactor(map(os.fsencode, spec.hidden)))
    reading = asyncio.create_task(tail.read())
    try:
        _join_cgroup(process.pid, spec)
        if not own:
            _set_limits(limits, process.pid)
        process.stdin.write(b"\n")
        process.stdin.close()
        async with asyncio.timeout(timeout or None):
            code = await process.wait()
            await reading
    except TimeoutError:
        if process.returncode == 0:  # passed; a descendant of it still holds its output
            return CheckResult(True)
        return CheckResult(False, _problem(f"took longer than {timeout:g} s", tail.text))
    finally:
        await _end(process, reading)
    return CheckResult(code == 0, "" if code == 0 else _problem(f"exit code {code}", tail.text))


def _join_cgroup(pid: int, spec: ShimSpec) -> None:
    """Move a check into its task's cgroup. Raises OSError."""
    if spec.cgroup is not None:
        with open(os.path.join(spec.cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))


def _limits(spec: ShimSpec) -> tuple[_Limit, ...]:
    return tuple((getattr(resource, name), (soft, hard)) for name, soft, hard in spec.rlimits)


def _set_limits(limits: tuple[_Limit, ...], pid: int) -> None:
    """Set limits of a process. 0 is this one: without CAP_SYS_RESOURCE a process may set no limits
    of another user's processes, but lower its own."""
    for number, values in limits:
        resource.prlimit(pid, number, values)


async def wait_until_unhealthy(check: HealthCheck, run: Check, age: float) -> str:
    """Return the reason once a task must be killed for its health.

    ``age`` is the seconds since the task's start. The first check runs ``delay`` after the start;
    failures within ``grace-period`` of it don't count.
    """
    started = time.monotonic() - age
    await asyncio.sleep(max(0.0, check.delay - age))
    failures = 0
    while True:
        result = await _run_or_none(run)
        if result is not None:
            counts = not result.passed and time.monotonic() >= started + check.grace_period
            failures = failures + 1 if counts else 0
            if failures >= check.max_consecutive_failures:
                return f"unhealthy: the health check failed {failures} times: {result.problem}"
        await asyncio.sleep(max(check.interval, _CHECK_INTERVAL_MINIMUM))


async def wait_until_ready(
    check: ReadinessCheck,
    run: Check,
    age: float,
    report: Report,
    pace: ReportPace = _PACE,
) -> None:
    """Return when the readiness check has passed. Until then report why it fails, and again when it
    fails with another exit code or output. ``age`` is the seconds since the task's start."""
    await asyncio.sleep(max(0.0, check.delay - age))
    reported, due = "", math.inf
    while True:
        result = await _run_or_none(run)
        if result is not None and result.passed:
            return
        if result is not None and result.problem != reported:
            now = time.monotonic()
            due = now + pace.first if due == math.inf else due
            if now >= due:
                reported, due = result.problem, now + pace.interval
                await report(f"the readiness check fails: {result.problem}")
        await asyncio.sleep(max(check.interval, _CHECK_INTERVAL_MINIMUM))


async def _run_or_none(run: Check) -> CheckResult | None:
    try:
        return await run()
    except (
        OSError,
        SubprocessError,
    ) as problem:  # such as too many processes: no reason to kill a task
        _log.warning("a check could not be run: %s", problem)
        return None


async def _end(process: asyncio.subprocess.Process, reading: "asyncio.Task[None]") -> None:
    """Kill the rest of a check. Its group id is not reused: a member of the group still runs."""
    if process.returncode is None or not reading.done():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading


def _problem(failure: str, output: str) -> str:
    return f"{failure}: {output}" if output else failure


class _OutputTail:
    """Reads a stream to its end and keeps the last bytes."""

    def __init__(self, stream: asyncio.StreamReader, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor
        self._last = b""

    async def read(self) -> None:
        kept = _OUTPUT_SIZE_LIMIT + self._redactor.longest
        while chunk := await self._stream.read(65536):
            self._last = (self._last + chunk)[-kept:]

    @property
    def text(self) -> str:
        return self._redactor.tail(self._last, _OUTPUT_SIZE_LIMIT).strip()
