"""Running an agent: take the work directory, adopt, register, work until told to stop."""

import asyncio
import logging
import sys
from importlib.metadata import PackageNotFoundError, version
from uuid import uuid4

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from temporal_plans.activities.agent.activities import AgentActivities
from temporal_plans.activities.agent.cgroups import CgroupTree, NoCgroups, open_cgroups
from temporal_plans.activities.agent.layout import WorkDir, directory_name
from temporal_plans.activities.agent.machine import measure
from temporal_plans.activities.agent.outbox import NoSuchDestination, Outbox, Send
from temporal_plans.activities.agent.pods import PodSource
from temporal_plans.activities.agent.preparation import Preparation
from temporal_plans.activities.agent.rlimits import may_raise
from temporal_plans.activities.agent.runner import TaskRunner
from temporal_plans.activities.agent.secrets import Secrets, secret_provider
from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.domain.cluster import AgentInfo
from temporal_plans.domain.task import TaskStatus
from temporal_plans.messages.cluster import (
    PLANS_QUEUE,
    TaskStatuses,
    agent_queue,
    pool_id,
)

_log = logging.getLogger(__name__)

_REGISTER_RETRY = 2.0
_UNWATCHED = 30.0


class AgentCannotRun(Exception):
    """This process can't be an agent; the text says what is missing."""


async def run_agent(client: Client, settings: AgentSettings, *, stop: asyncio.Event) -> None:
    """Runs an agent until ``stop`` is set. Its tasks go on without it (see the package).

    ``client`` must convert pydantic values and should carry no workflow plugins: an agent runs
    activities only. Raises AgentCannotRun, layout.WorkDirInUse, secrets.InvalidSecretProvider, or
    OSError when the work directory can't be used; and what the worker raises when it can't go on.
    """
    _check(client)
    work_dir = WorkDir(settings.work_dir)
    work_dir.acquire()
    try:
        secrets = Secrets([secret_provider(text) for text in settings.secrets])
        cgroups = _cgroups(settings)
        boot = uuid4().hex
        runner = TaskRunner(
            settings,
            work_dir,
            PodSource(client),
            Preparation(settings, work_dir, secrets, cgroups, may_raise()),
            lambda delivered: Outbox(signals_of(client), delivered),
            lambda task_id: cgroups.remove(directory_name(task_id)) if cgroups else None,
        )
        activities = AgentActivities(client, runner, boot)
        info = _introduce(settings, work_dir, boot, cgroups)
        runner.start()
        try:
            await _work(client, settings, activities, info, stop)
        finally:
            await runner.stop()
    finally:
        work_dir.release()


async def _work(
    client: Client,
    settings: AgentSettings,
    activities: AgentActivities,
    info: AgentInfo,
    stop: asyncio.Event,
) -> None:
    worker = Worker(
        client,
        task_queue=agent_queue(settings.id),
        activities=[
            activities.launch,
            activities.run_task,
            activities.kill,
            activities.destroy,
            activities.read_log,
            activities.watch,
        ],
        identity=agent_queue(settings.id),
        max_concurrent_activities=settings.max_concurrent_activities,
    )
    beside = [
        asyncio.create_task(_stay_registered(client, info, activities)),
        asyncio.create_task(_stop_with(worker, stop)),
    ]
    try:
        await worker.run()
    finally:
        for job in beside:
            job.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


async def _stop_with(worker: Worker, stop: asyncio.Event) -> None:
    await stop.wait()
    await worker.shutdown()


async def _stay_registered(client: Client, info: AgentInfo, activities: AgentActivities) -> None:
    """Registers with the pool; again when nothing has watched this agent for long.

    That happens when somebody terminated the pool's workflow: the new one knows no agents.
    """
    while True:
        try:
            await register(client, info)
            _log.info("agent %s is registered with %s", info.id, pool_id(info.pool))
            pause = _UNWATCHED
        except RPCError as problem:
            _log.warning("%s can't be told of this agent yet: %s", pool_id(info.pool), problem)
            pause = _REGISTER_RETRY
        await asyncio.sleep(pause)
        while activities.watched:
            await asyncio.sleep(_UNWATCHED)


async def register(client: Client, info: AgentInfo) -> None:
    """Tells the pool of an agent, and starts the pool's workflow if there is none. RPCError."""
    await client.start_workflow(
        "Pool",
        {"name": info.pool},
        id=pool_id(info.pool),
        task_queue=PLANS_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal="register",
        start_signal_args=[info],
    )


def signals_of(client: Client) -> Send:
    """Sends statuses as the signal ``task_statuses``."""

    async def send(destination: str, statuses: tuple[TaskStatus, ...]) -> None:
        handle = client.get_workflow_handle(destination)
        try:
            await handle.signal("task_statuses", TaskStatuses(statuses=statuses))
        except RPCError as problem:
            if problem.status is RPCStatusCode.NOT_FOUND:
                raise NoSuchDestination(destination) from None
            raise

    return send


def _check(client: Client) -> None:
    if sys.platform != "linux":
        raise AgentCannotRun(
            "agents run on Linux only: tasks are supervised through /proc and pidfd"
        )
    converter = client.config()["data_converter"].payload_converter_class
    if not issubclass(converter, PydanticPayloadConverter):
        raise AgentCannotRun(
            "the client converts no pydantic values; connect it with "
            "data_converter=temporalio.contrib.pydantic.pydantic_data_converter"
        )


def _cgroups(settings: AgentSettings) -> CgroupTree | None:
    if settings.isolation == "accounted":
        return None
    try:
        return open_cgroups(settings.cgroup, settings.id)
    except NoCgroups as problem:
        if settings.isolation == "cgroup-v2":
            raise AgentCannotRun(f"isolation: cgroup-v2 is not to be had: {problem}") from None
        _log.info("cpu and memory are accounted, not limited: %s", problem)
        return None


def _introduce(
    settings: AgentSettings, work_dir: WorkDir, boot: str, cgroups: CgroupTree | None
) -> AgentInfo:
    return AgentInfo(
        id=settings.id,
        hostname=settings.hostname,
        pool=settings.pool,
        resources=settings.resources or measure(work_dir.root),
        attributes=settings.attributes,
        region=settings.region,
        zone=settings.zone,
        boot=boot,
        isolation="cgroup-v2" if cgroups else "accounted",
        version=_version(),
    )


def _version() -> str:
    try:
        return version("temporal-plans")
    except PackageNotFoundError:
        return ""  # a bare checkout
