"""What must be so at the end of a soak test: every ``*_faults`` says what is not."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client, WorkflowExecution, WorkflowQueryFailedError
from temporalio.service import RPCError

from acceptance.cluster import Cluster
from acceptance.soak.ledger import Given, Ledger
from acceptance.soak.operators import Operated, Operators
from temporal_plans.activities.agent.host.layout import WorkDir, directory_name
from temporal_plans.activities.agent.supervisor.environ import environ_of
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.launch import LaunchIntent
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.plans import CommandLog
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.worker.sdk.query_ahead import AHEAD_OF_TASKS

UPKEEP = ("deploy", "recovery", "decommission")
"""The plans that have to be complete; others may wait for somebody to start them."""


# --- every service is what it was last told to be -------------------------------------------------


async def service_faults(cluster: Cluster, service: Operated) -> list[str]:
    """Plans, tasks, processes and reservations of a service."""
    client, name = await cluster.client(), service.kind.name
    status = await client.service(name)
    faults = [
        f"plan {plan.name} is {plan.status}"
        for plan in status.plans
        if not _at_rest(plan.name, plan.status)
    ]
    faults += [f"its configuration: {error}" for error in status.errors]
    faults += [
        f"lease of {one.phase} step {one.step}: {one.pod}-{one.index}" for one in status.leases
    ]
    spec = await client.config(name)
    if spec != service.life.spec(service.wanted.values):
        faults.append("the configuration in force is another than the last one")
    faults += await _task_faults(cluster, service)
    faults += await _holding_faults(cluster, service)
    return [f"{name}: {fault}" for fault in faults]


def _at_rest(plan: str, status: Status) -> bool:
    if status is Status.COMPLETE:
        return True
    return plan not in UPKEEP and status is Status.WAITING


async def _task_faults(cluster: Cluster, service: Operated) -> list[str]:
    kind, wanted = service.kind, service.wanted
    records = await service.life.records()
    running, finished = _names(service, kind.tasks), _names(service, kind.jobs)
    faults: list[str] = []
    for names, state in ((running, TaskState.RUNNING), (finished, TaskState.FINISHED)):
        for name in sorted(names):
            record = records.get(name)
            is_state = record.status.state if record and record.status else None
            if is_state is not state:
                faults.append(f"task {name} is {is_state}, not {state}")
            elif record is not None and record.paused:
                faults.append(f"task {name} runs paused")
    pods = {f"{pod}-{index}" for pod, count in wanted.counts.items() for index in range(count)}
    faults += [
        f"task {name} is {record.status and record.status.state}, and nobody wants its pod"
        for name, record in records.items()
        if f"{record.pod}-{record.index}" not in pods
    ]
    alive = {task: pids for task, pids in cluster.running().items() if _is_of(task, kind.name)}
    expected = {records[name].task_id for name in running if name in records}
    faults += [f"process {task} is an orphan" for task in sorted(alive.keys() - expected)]
    faults += [f"no process of {task}" for task in sorted(expected - alive.keys())]
    for name in sorted(running & records.keys()):
        if pids := alive.get(records[name].task_id):
            version = _environment(min(pids)).get("VERSION")
            if version != str(wanted.version):
                faults.append(f"{name} runs with version {version}, not {wanted.version}")
    return faults


def _names(service: Operated, tasks: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {
        task_instance_name(pod, index, task)
        for pod, names in tasks.items()
        for index in range(service.wanted.counts[pod])
        for task in names
    }


def _is_of(task_id: str, service: str) -> bool:
    return task_id.startswith(f"{service}__")


def _environment(pid: int) -> dict[str, str]:
    try:
        entries = environ_of(pid).decode().split("\0")
    except OSError:  # it has just ended
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


async def _holding_faults(cluster: Cluster, service: Operated) -> list[str]:
    """Every pod that is wanted holds one reservation, and the pool knows the same."""
    views = await service.life.pods()
    held = {pod.name: pod.reservation for pod in views.values() if pod.reservation}
    expected = {
        f"{pod}-{index}" for pod, count in service.wanted.counts.items() for index in range(count)
    }
    faults = [f"pod {pod} holds nothing" for pod in sorted(expected - held.keys())]
    faults += [f"pod {pod} holds what it should not" for pod in sorted(held.keys() - expected)]
    pool = await cluster.pool()
    owner = f"service/{service.kind.name}"
    in_pool = {one.id for one in pool.reservations if one.owner == owner}
    in_service = {one.id for one in held.values()}
    faults += [f"reservation {one} is the pool's only" for one in sorted(in_pool - in_service)]
    faults += [f"reservation {one} is the service's only" for one in sorted(in_service - in_pool)]
    for name, one in held.items():
        cpus = sum(resource.value for resource in one.resources if resource.kind == "cpus")
        wanted = service.wanted.cpus + service.kind.beside.get(one.pod, 0)
        if abs(cpus - wanted) > 0.001:
            faults.append(f"pod {name} holds {cpus:g} cpus, not {wanted:g}")
    return faults


# --- the cluster ----------------------------------------------------------------------------------


async def cluster_faults(cluster: Cluster, operators: Operators) -> list[str]:
    """Agents, and what is in the pool and on the agents' disks beside what services hold."""
    pool = await cluster.pool()
    owners = {f"service/{name}" for name in operators.services}
    faults = [
        f"agent {one.info.id} is {one.state}"
        for one in pool.agents
        if one.state is not AgentState.ALIVE
    ]
    known = {one.info.id for one in pool.agents}
    faults += [f"agent {one} is not in the pool" for one in sorted(cluster.agents.keys() - known)]
    faults += [
        f"{one.key} is reserved for {one.owner}"
        for one in pool.reservations
        if one.owner not in owners
    ]
    faults += [f"{one.requirement.key} waits in the pool" for one in pool.waiting]
    for agent in cluster.agents:
        faults += _disk_faults(cluster, agent, pool)
    return faults


def _disk_faults(cluster: Cluster, agent: str, pool: PoolStatus) -> list[str]:
    """Volumes of nobody, and supervisors without a task."""
    path = cluster.work_dir(agent)
    held = [one for one in pool.reservations if one.agent == agent]
    there = {volume.name for volume in (path / "volumes").iterdir()}
    faults = [f"volume {one} on {agent} is nobody's" for one in sorted(there - _volumes(held))]
    running = {directory_name(task) for task in cluster.running()}
    return faults + [
        f"supervisor {pid} of {task.path.name} on {agent} has no task"
        for task in WorkDir(path).tasks()
        if (pid := task.supervisor()) is not None and task.path.name not in running
    ]


def _volumes(held: Iterable[Reservation]) -> set[str]:
    return {directory_name(resource.id) for one in held for resource in one.resources}


# --- what was started -----------------------------------------------------------------------------


def launch_faults(
    launches: Mapping[str, int], newest: Iterable[str], recorded: Container[str]
) -> list[str]:
    """``launches``: how often each task id was started; ``newest`` are those that run or finished
    as services know it, ``recorded`` all that they ever had on record: each of the former was
    started, nothing but the latter was, and nothing was twice."""
    faults = [f"{task} was started {n} times" for task, n in launches.items() if n > 1]
    faults += [f"{task} was never started" for task in newest if task not in launches]
    return faults + [
        f"{task} was started, and never on record" for task in launches if task not in recorded
    ]


# --- what was said --------------------------------------------------------------------------------


async def command_faults(bare: Client, ledger: Ledger) -> list[str]:
    """Every command that was accepted is in a log, and none is in one twice.

    The log of a plan goes on from run to run, so the newest one has all; that of a service that
    was uninstalled meanwhile ended with it.
    """
    logs = [
        (run, await _log(bare, run))
        async for run in bare.list_workflows(
            "WorkflowType IN ('Plan', 'Service') AND ExecutionStatus != 'ContinuedAsNew'"
        )
    ]
    faults: list[str] = []
    found: dict[str, set[str]] = defaultdict(set)
    for run, log in logs:
        if log is None:
            faults.append(f"{run.id} {run.run_id} has no log")
            continue
        reasons = Counter(entry.reason for entry in log.entries if entry.reason)
        faults += [
            f"{reason} is {n} times in the log of {run.id}"
            for reason, n in reasons.items()
            if n > 1
        ]
        for reason in reasons:
            found[reason].add(run.id)
    newest = _newest(logs)
    for one in ledger.accepted():
        current = one.life == ledger.lives[one.service]
        if not found.get(one.reason):
            faults.append(f"{_said(one)} is in no log")
        elif current and not any(one.reason in reasons for reasons in newest.values()):
            places = ", ".join(sorted(found[one.reason]))
            faults.append(f"{_said(one)} is only in an old log of {places}")
    return faults


def _said(one: Given) -> str:
    return f"{one.reason} ({one.service}: {one.what})"


def _newest(
    logs: Iterable[tuple[WorkflowExecution, CommandLog | None]],
) -> dict[str, set[str]]:
    """The reasons in the log of the newest run of each workflow."""
    newest: dict[str, tuple[WorkflowExecution, CommandLog]] = {}
    for run, log in logs:
        known = newest.get(run.id)
        if log is not None and (known is None or known[0].start_time < run.start_time):
            newest[run.id] = run, log
    return {key: {entry.reason for entry in log.entries} for key, (_, log) in newest.items()}


async def _log(bare: Client, run: WorkflowExecution) -> CommandLog | None:
    handle = bare.get_workflow_handle(run.id, run_id=run.run_id)
    try:
        log: CommandLog = await handle.query("log", result_type=CommandLog)
    except (RPCError, WorkflowQueryFailedError):
        return None
    return log


# --- what happened inside -------------------------------------------------------------------------

_HARMLESS = {
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
}
"""The server's own ways to have a task done again."""


_BLOCKED = "[TMPRL1101]"
_LATE = timedelta(seconds=5)
"""After a stop, until what it was taken for is recorded."""


class Histories:
    """What the histories of all workflows say. ``frozen``: from when to when the worker was
    stopped, which the SDK takes for workflow code that blocks."""

    def __init__(self, frozen: Sequence[tuple[datetime, datetime]]) -> None:
        self._frozen = frozen
        self.faults: list[str] = []
        self.recorded: set[str] = set()
        self.events = 0
        self.workflows = 0

    def _was_frozen(self, time: datetime) -> bool:
        return any(begin <= time <= end + _LATE for begin, end in self._frozen)

    async def read(self, bare: Client) -> None:
        async for run in bare.list_workflows(""):
            self.workflows += 1
            handle = bare.get_workflow_handle(run.id, run_id=run.run_id)
            async for event in handle.fetch_history_events():
                self.events += 1
                if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                    failed = event.workflow_task_failed_event_attributes
                    meant = failed.failure.message == AHEAD_OF_TASKS or (
                        failed.failure.message.startswith(_BLOCKED)
                        and self._was_frozen(event.event_time.ToDatetime(UTC))
                    )
                    if failed.cause not in _HARMLESS and not meant:
                        self.faults.append(
                            f"{run.id}: a workflow task failed: {failed.failure.message[:500]}"
                        )
                elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
                    failure = event.workflow_execution_failed_event_attributes.failure
                    self.faults.append(f"{run.id} failed: {failure.message[:500]}")
                elif event.event_type == (EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED):
                    accepted = event.workflow_execution_update_accepted_event_attributes
                    request = accepted.accepted_request.input
                    if request.name == "record_launch":
                        [intent] = await bare.data_converter.decode(
                            request.args.payloads, [LaunchIntent]
                        )
                        self.recorded |= {task.task_id for task in intent.tasks}
