"""Running an agent: take the work directory, adopt, register, work until told to stop."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import uuid4

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

from temporal_plans.activities.agent.activities import AgentActivities, Standing
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
from temporal_plans.domain.pool import AgentIdTakenError, NamelessAgentError
from temporal_plans.domain.task import TaskStatus
from temporal_plans.messages.cluster import (
    PLANS_QUEUE,
    TaskStatuses,
    agent_queue,
    pool_id,
)

_log = logging.getLogger(__name__)

_REFUSALS = (AgentIdTakenError.__name__, NamelessAgentError.__name__)

_REGISTER_RETRY = 1.0
_REGISTER_LIMIT = timedelta(seconds=20)
_UNWATCHED = 10.0
_UNWATCHED_AGAIN = 3.0


class AgentCannotRun(Exception):
    """This process can't be an agent; the text says what is missing."""


class AgentRefused(AgentCannotRun):
    """The Pool does not take this agent: another one is alive under its id. What it may have
    started before goes on, without an agent."""


async def run_agent(client: Client, settings: AgentSettings, *, stop: asyncio.Event) -> None:
    """Runs an agent until ``stop`` is set. Its tasks go on without it (see the package).

    ``client`` must convert pydantic values and should carry no workflow plugins: an agent runs
    activities only. Raises AgentCannotRun, layout.WorkDirInUse, secrets.InvalidSecretProvider, or
    OSError when the work directory can't be used; and what the worker raises when it can't go on.

    It registers before it polls its queue, so that a second agent under the id of a live one is
    refused (AgentRefused) and never takes anything from it. A restart is known by its work
    directory and goes on at once.
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
            if await _joined(client, info, stop):
                await _work(client, settings, activities, info, stop)
        finally:
            await runner.stop()
    finally:
        work_dir.release()


async def _joined(client: Client, info: AgentInfo, stop: asyncio.Event) -> bool:
    """Registers; False when the agent is told to stop first. AgentRefused."""
    registering = asyncio.create_task(_registered(client, info))
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
    staying = asyncio.create_task(_stay_registered(client, info, activities.standing))
    stopping = asyncio.create_task(stop.wait())
    ending = asyncio.create_task(_shut_down_after(worker, (staying, stopping)))
    try:
        await worker.run()
    finally:
        for job in (staying, stopping, ending):
            job.cancel()
        await asyncio.gather(staying, stopping, ending, return_exceptions=True)
    if not staying.cancelled():
        await staying  # it never ends but by an exception


async def _shut_down_after(worker: Worker, jobs: Sequence["asyncio.Task[Any]"]) -> None:
    """Ends a worker when the first of these is over."""
    await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    await worker.shutdown()


async def _stay_registered(client: Client, info: AgentInfo, standing: Standing) -> None:
    """Registers again whenever nothing watches this agent. AgentRefused.

    That happens when somebody terminated the pool's workflow, when the agent was removed from it,
    or when this machine was away for so long that another agent took its place.
    """
    while True:
        await standing.in_doubt(_UNWATCHED, _UNWATCHED_AGAIN)
        await _registered(client, info)
        standing.settled()


async def _registered(client: Client, info: AgentInfo) -> None:
    """Registers with the pool, as often as it takes. AgentRefused."""
    pool = pool_id(info.pool)
    while True:
        try:
            await register(client, info)
        except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as problem:
            if isinstance(problem.__cause__, asyncio.CancelledError):
                raise problem.__cause__ from None  # it is us who are cancelled
            _log.warning("%s can't be told of this agent yet: %s", pool, problem)
        except WorkflowUpdateFailedError as problem:
            cause = problem.cause
            if isinstance(cause, ApplicationError) and cause.type in _REFUSALS:
                raise AgentRefused(f"{pool}: {cause.message}") from None
            _log.warning("%s did not take this agent yet: %s", pool, cause)
        else:
            _log.info("agent %s is registered with %s", info.id, pool)
            return
        await asyncio.sleep(_REGISTER_RETRY)


async def register(client: Client, info: AgentInfo) -> None:
    """Tells the pool of an agent, and starts the pool's workflow if there is none.

    Raises RPCError or WorkflowUpdateRPCTimeoutOrCancelledError while the pool can't be asked, and
    WorkflowUpdateFailedError when it refuses, of type AgentIdTakenError for a taken id.
    """
    start: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
        "Pool",
        {"name": info.pool},
        id=pool_id(info.pool),
        task_queue=PLANS_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    await client.execute_update_with_start_workflow(
        "register", info, start_workflow_operation=start, rpc_timeout=_REGISTER_LIMIT
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
        lineage=work_dir.lineage(),
        isolation="cgroup-v2" if cgroups else "accounted",
        version=_version(),
    )


def _version() -> str:
    try:
        return version("temporal-plans")
    except PackageNotFoundError:
        return ""  # a bare checkout
