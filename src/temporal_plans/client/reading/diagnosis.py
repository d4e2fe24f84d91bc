"""What is wrong with a service: its configuration, its code, its pods and their agents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from temporal_plans.client.reading.remedies import Places, agent_hints
from temporal_plans.domain.plans.explain import Explanations, PendingWork
from temporal_plans.domain.plans.hint import Hint, plan_hint
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.names import instance_of
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.owners import OwnerStatus
from temporal_plans.messages.plans import CommandLog
from temporal_plans.messages.services import PodView, ServiceStatus

_CODE_FAILURES_LIMIT = 3
"""Failures of developers' code that are reported: the newest."""


class Finding(CompactValue):
    """One thing that is wrong: its ``subject`` (``pod hello-0``), the cause, commands that help,
    and the traceback of developers' code that failed."""

    subject: str
    text: str
    hints: tuple[Hint, ...] = ()
    trace: str = ""


class Diagnosis(CompactValue):
    """What is wrong with a service: ``findings``, and the explanations of its plans that are not
    complete, by name. ``silent`` are the errors of plans that do not answer. ``objects`` is the
    number of those that a package has in its cluster."""

    service: str
    findings: tuple[Finding, ...] = ()
    plans: dict[str, Explanations] = {}
    silent: dict[str, str] = {}
    tasks: int = 0
    running: int = 0
    objects: int | None = None

    @property
    def extent(self) -> str:
        """What the service has, in words."""
        if self.objects is not None:
            return f"{self.objects} objects in its cluster"
        return f"{self.running} of {self.tasks} tasks run"

    @property
    def well(self) -> bool:
        """Whether nothing is wrong, and no plan is under way or waits."""
        return not (self.findings or self.plans or self.silent)


def findings(
    status: ServiceStatus,
    *,
    pods: Sequence[PodView],
    log: CommandLog,
    agents: Places,
    pools: Mapping[str, object],
    stuck: Iterable[StuckWorkflow],
    work: Iterable[PendingWork],
    now: datetime,
) -> tuple[Finding, ...]:
    """Return what is wrong with a service beside its plans. ``pools`` are the answers of all pools,
    errors included; ``work`` is the pending work of the Service workflow itself."""
    return (
        *of_stuck(stuck),
        *of_configuration(status),
        *_pool(status, pools),
        *_strangers(status),
        *(finding for pod in pods for finding in _pod(status.name, pod, agents)),
        *of_own_work(work, now),
        *of_code(status.name, log),
    )


def of_stuck(stuck: Iterable[StuckWorkflow]) -> Iterator[Finding]:
    for one in stuck:
        yield Finding(subject=one.workflow_id, text=f"stands still: {one.text}", hints=one.hints)


def of_configuration(status: OwnerStatus) -> Iterator[Finding]:
    for error in status.errors:
        words = ("rollback", str(status.number))
        last = error == status.errors[-1]
        keep = plan_hint("to keep it, and clear the errors", *words, service=status.name)
        yield Finding(
            subject="configuration",
            text=f"the newest one was refused, number {status.number} is in force: {error}",
            hints=(keep,) if last else (),
        )


def _pool(status: ServiceStatus, pools: Mapping[str, object]) -> Iterator[Finding]:
    answer = pools.get(status.pool)
    if isinstance(answer, Exception):
        yield Finding(subject=f"pool {status.pool}", text=str(answer))
    elif answer is None:
        yield Finding(
            subject=f"pool {status.pool}",
            text="no agent has registered",
            hints=(plan_hint("to start one on this machine", "agent", "--pool", status.pool),),
        )


def _strangers(status: ServiceStatus) -> Iterator[Finding]:
    for task in status.strangers:
        yield Finding(
            subject=f"task {instance_of(task.task_id)}",
            text=f"{task.task_id} runs on agent {task.agent}, and this service has no memory of "
            "launching it, as after a restore from a backup; nothing is launched beside it",
            hints=(
                plan_hint("to compare services with agents", "audit"),
                plan_hint("to end it", "audit", "--end", task.task_id),
            ),
        )


def _pod(service: str, pod: PodView, agents: Places) -> Iterator[Finding]:
    hints = agent_hints(pod, service, agents)
    if hints:
        yield Finding(subject=f"pod {pod.name}", text="its agent does not answer", hints=hints)
    for record in (task for task in pod.tasks if pod.wanted and not task.retired):
        shown = pod.shown.get(record.name, "")
        if shown.startswith("PAUS"):
            yield Finding(
                subject=f"pod {pod.name}",
                text=f"task {record.task} is {shown}",
                hints=(plan_hint("to resume it", "pod", "resume", pod.name, service=service),),
            )
        elif not hints and _is_down(record):
            yield _down(service, pod, record)


def _is_down(record: TaskRecord) -> bool:
    status = record.status
    if status is None or record.goal != Goal.RUNNING:
        return status is not None and status.state in (TaskState.FAILED, TaskState.ERROR)
    return status.state is not TaskState.RUNNING or status.ready is False


def _down(service: str, pod: PodView, record: TaskRecord) -> Finding:
    assert record.status is not None
    not_ready = record.status.state is TaskState.RUNNING
    state = "is not ready" if not_ready else f"is {record.status.state}"
    why = f": {record.status.message}" if record.status.message else ""
    logs = ("logs", record.name, "--stderr", "--tail", "20")
    return Finding(
        subject=f"pod {pod.name}",
        text=f"task {record.task} {state}{why}",
        hints=(plan_hint("to see what it wrote", *logs, service=service),),
    )


def of_own_work(work: Iterable[PendingWork], now: datetime) -> Iterator[Finding]:
    """Yield activities of the service itself that fail or wait, such as a configuration's check."""
    for one in work:
        if one.attempt > 1 or one.waits_for_a_worker(now):
            failed = f", the attempt before failed: {one.last_failure}" if one.last_failure else ""
            state = "waits for a worker" if one.waits_for_a_worker(now) else "is retried"
            yield Finding(
                subject=f"activity {one.type}", text=f"{state}, attempt {one.attempt}{failed}"
            )


def of_code(service: str, log: CommandLog) -> Iterator[Finding]:
    failures = [entry for entry in log.entries if entry.trace][-_CODE_FAILURES_LIMIT:]
    for entry in failures:
        yield Finding(
            subject=f"own code ({entry.verb})",
            text=entry.outcome.message,
            hints=(plan_hint("to see when", "log", service=service),),
            trace=entry.trace,
        )
