"""Runs an agent: lock the work directory, adopt tasks, register, work until stopped."""

import asyncio
import logging
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import uuid4

from temporalio.client import (
    Client,
)
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from temporal_plans.activities.agent.host.activities import AgentActivities
from temporal_plans.activities.agent.host.layout import WorkDir, directory_name
from temporal_plans.activities.agent.host.machine import measure
from temporal_plans.activities.agent.host.pods import PodSource
from temporal_plans.activities.agent.host.preparation import Preparation
from temporal_plans.activities.agent.host.registration import (
    AgentCannotRun,
    Registration,
)
from temporal_plans.activities.agent.host.restored_server import RestoredServer
from temporal_plans.activities.agent.host.runner import TaskRunner
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_outbox import NoSuchDestination, Send, StatusOutbox
from temporal_plans.activities.agent.sandbox.cgroups import (
    CgroupsUnavailable,
    CgroupTree,
    open_cgroups,
)
from temporal_plans.activities.agent.sandbox.rlimits import can_raise_rlimits
from temporal_plans.activities.agent.sandbox.secrets import Secrets
from temporal_plans.activities.mechanics.secrets import secret_provider
from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.tasks import TaskStatuses

_log = logging.getLogger(__name__)

# In seconds.
_FIRST_WATCH_TIMEOUT = 10.0
_NEXT_WATCH_TIMEOUT = 3.0

_HEARTBEAT_INTERVAL = timedelta(seconds=2)
"""The SDK holds heartbeats back for at most so long, and else for most of their timeout, so that an
agent that is late once would seem silent."""


async def run_agent(client: Client, settings: AgentSettings, *, stop: asyncio.Event) -> None:
    """Run an agent until ``stop`` is set. Its tasks keep running afterwards (see the package).

    ``client`` must convert pydantic values and should have no workflow plugins: an agent runs
    activities only. Raises AgentCannotRun, layout.WorkDirInUse, layout.WorkDirUnreadable,
    secrets.InvalidSecretProvider; and the error of a worker that fails.

    It registers before it polls its queue, so that a second agent under the id of a live one is
    refused (AgentRefused) and never takes its activities. The pool recognizes a restarted agent by
    its work directory and accepts it at once.
    """
    _check_client(client)
    work_dir = WorkDir(settings.work_dir)
    with _in_words(work_dir):
        work_dir.acquire()
    try:
        secrets = Secrets([secret_provider(text) for text in settings.secrets])
        cgroups = _cgroups(settings)
        boot = uuid4().hex
        runner = TaskRunner(
            settings,
            work_dir,
            PodSource(client),
            Preparation(settings, work_dir, secrets, cgroups, can_raise_rlimits()),
            lambda delivered: StatusOutbox(status_sender(client), delivered),
            lambda task_id: cgroups.remove(directory_name(task_id)) if cgroups else None,
            lambda task_id: cgroups.kill(directory_name(task_id)) if cgroups else None,
        )
        activities = AgentActivities(client, runner, boot)
        with _in_words(work_dir):
            info = _agent_info(settings, work_dir, boot, cgroups)
            runner.start()
        registration = Registration(client, info, runner.ports.in_use)
        runner.ports.report = registration.report_ports
        try:
            if await _register_unless_stopped(registration, stop):
                await _run_worker(client, settings, activities, registration, stop)
        finally:
            await runner.stop()
    finally:
        work_dir.release()


async def _register_unless_stopped(registration: Registration, stop: asyncio.Event) -> bool:
    """Register the agent. Return False when ``stop`` is set first. Raises AgentRefused."""
    registering = asyncio.create_task(registration.register_with_retries())
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((registering, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not registering.done():
            return False
        await registering
        return True
    finally:
        registering.cancel()
        stopping.cancel()
        await asyncio.gather(registering, stopping, return_exceptions=True)


async def _run_worker(
    client: Client,
    settings: AgentSettings,
    activities: AgentActivities,
    registration: Registration,
    stop: asyncio.Event,
) -> None:
    worker = Worker(
        client,
        task_queue=settings.queue,
        activities=[
            activities.launch,
            activities.run_task,
            activities.kill,
            activities.destroy,
            activities.list_tasks,
            activities.read_log,
            activities.watch,
        ],
        identity=settings.queue,
        max_concurrent_activities=settings.max_concurrent_activities,
        max_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
        default_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
    )
    registering = asyncio.create_task(_stay_registered(registration, activities))
    ports = asyncio.create_task(registration.report_changed_ports())
    restored = RestoredServer(client, settings.pool, activities.repeat_statuses)
    detecting = asyncio.create_task(restored.detect())
    stopping = asyncio.create_task(stop.wait())
    shutdown = asyncio.create_task(_shut_down_after(worker, (registering, stopping)))
    try:
        await worker.run()
    finally:
        jobs = (registering, ports, detecting, stopping, shutdown)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
    if not registering.cancelled():
        await registering  # it ends by an exception only


async def _shut_down_after(worker: Worker, jobs: Sequence["asyncio.Task[Any]"]) -> None:
    """Shut a worker down when the first of the jobs is done."""
    await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    await worker.shutdown()


async def _stay_registered(registration: Registration, activities: AgentActivities) -> None:
    """Register again whenever the pool does not watch this agent. Raises AgentRefused.

    That happens when the pool's workflow was terminated, when the agent was removed from the pool,
    or when this machine was unreachable for so long that another agent replaced it. An agent whose
    threads are stuck waits until they are free.
    """
    watches = activities.watches
    while True:
        await watches.wait_until_unconfirmed(_FIRST_WATCH_TIMEOUT, _NEXT_WATCH_TIMEOUT)
        await activities.probe.wait_until_free()
        await registration.register_with_retries()
        watches.confirm()


def status_sender(client: Client) -> Send:
    """Return a function that sends statuses as the signal ``task_statuses``."""

    async def send(destination: str, statuses: tuple[TaskStatus, ...]) -> None:
        handle = client.get_workflow_handle(destination)
        try:
            await handle.signal("task_statuses", TaskStatuses(statuses=statuses))
        except RPCError as problem:
            if problem.status is RPCStatusCode.NOT_FOUND:
                raise NoSuchDestination(destination) from None
            raise

    return send


@contextmanager
def _in_words(work_dir: WorkDir) -> Generator[None]:
    """Raise AgentCannotRun for an error of the system, such as a full disk."""
    try:
        yield
    except OSError as problem:
        place = problem.filename or work_dir.root
        reason = Reason(
            field=f"work directory {work_dir.root}",
            problem=f"{place}: {problem.strerror or problem}",
            fix="the agent must be able to read it and, at its first start, to write to it",
        )
        raise AgentCannotRun(Refusal(code=Code.UNAVAILABLE, reasons=(reason,))) from problem


def _check_client(client: Client) -> None:
    if sys.platform != "linux":
        raise _cannot_run(
            "platform",
            "agents run on Linux only, for tasks are supervised through /proc and pidfd",
            value=sys.platform,
        )
    converter = client.config()["data_converter"].payload_converter_class
    if not issubclass(converter, PydanticPayloadConverter):
        raise _cannot_run(
            "client",
            "the converter can't convert pydantic values",
            value=converter.__name__,
            fix="connect it with "
            "data_converter=temporalio.contrib.pydantic.pydantic_data_converter",
        )


def _cannot_run(field: str, problem: str, *, value: str | None = None, fix: str = "") -> Exception:
    reason = Reason(field=field, problem=problem, value=value, fix=fix)
    return AgentCannotRun(Refusal(code=Code.INVALID, reasons=(reason,)))


def _cgroups(settings: AgentSettings) -> CgroupTree | None:
    if settings.isolation == "accounted":
        return None
    try:
        return open_cgroups(settings.cgroup, settings.id)
    except CgroupsUnavailable as problem:
        if settings.isolation == "cgroup-v2":
            text = f"cgroup-v2 is not available: {problem}"
            raise _cannot_run("isolation", text) from None
        _log.info("cpu and memory are accounted but not limited: %s", problem)
        return None


def _agent_info(
    settings: AgentSettings, work_dir: WorkDir, boot: str, cgroups: CgroupTree | None
) -> AgentInfo:
    return AgentInfo(
        id=settings.id,
        queue=settings.queue,
        hostname=settings.hostname,
        pool=settings.pool,
        resources=settings.resources or measure(work_dir.root),
        attributes=settings.attributes,
        region=settings.region,
        zone=settings.zone,
        boot=boot,
        lineage=work_dir.lineage(),
        isolation="cgroup-v2" if cgroups else "accounted",
        version=_version(),
    )


def _version() -> str:
    try:
        return version("temporal-plans")
    except PackageNotFoundError:
        return ""  # a bare checkout
