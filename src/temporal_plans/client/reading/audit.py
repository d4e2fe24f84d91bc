"""What agents run, compared with what services know: after a restore of Temporal from a backup the
agents are ahead."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from temporal_plans.domain.plans.hint import Hint, plan_hint
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.tasks import ListedTask

_SERVICE = "service/"

Running = Mapping[str, Sequence[ListedTask]]
"""The tasks that run, by agent."""

Records = Mapping[str, Sequence[TaskRecord]]
"""The task records of services, by service."""


class Difference(CompactValue):
    """A task of which its agent and its service say different things, and commands that help."""

    task_id: str
    agent: str
    text: str
    hints: tuple[Hint, ...] = ()


class Audit(CompactValue):
    """The differences between agents and services; ``tasks`` is the number of tasks that run.
    ``silent``: the agents and services that gave no answer, and why: nothing is known of their
    tasks."""

    differences: tuple[Difference, ...] = ()
    silent: dict[str, str] = {}
    tasks: int = 0


def differences(
    running: Running, before: Records, after: Records, unanswered: Collection[str]
) -> tuple[Difference, ...]:
    """Compare agents with the records of services from ``before`` and ``after`` the agents were
    asked: what changed meanwhile is no difference. ``unanswered`` are services without an
    answer."""
    return (
        *_unknown(running, before, after, unanswered),
        *_missing(running, before, after),
    )


def _unknown(
    running: Running, before: Records, after: Records, unanswered: Collection[str]
) -> Iterator[Difference]:
    """Yield tasks that no service has launched. Commands of plans report to no service: they end
    with their activity."""
    known = set(_ids(before)) | set(_ids(after))
    for agent, tasks in running.items():
        for task in tasks:
            service = task.report_to.removeprefix(_SERVICE)
            of_a_service = task.report_to.startswith(_SERVICE)
            if not of_a_service or service in unanswered or task.task_id in known:
                continue
            there = service in after
            memory = "has no memory of launching it" if there else "does not exist"
            yield Difference(
                task_id=task.task_id,
                agent=agent,
                text=f"runs on agent {agent}, and service {service} {memory}",
                hints=(
                    plan_hint("to see its output", "logs", task.task_id, "--agent", agent),
                    plan_hint("to end it", "audit", "--end", task.task_id),
                ),
            )


def _missing(running: Running, before: Records, after: Records) -> Iterator[Difference]:
    """Yield tasks that run for their service, and not on their agent."""
    there = {agent: {task.task_id for task in tasks} for agent, tasks in running.items()}
    for service, records in after.items():
        ran = {record.task_id for record in before.get(service, ()) if record.runs}
        for record in records:
            if not record.runs or record.task_id not in ran or record.agent not in there:
                continue
            if record.task_id not in there[record.agent]:
                pod = f"{record.pod}-{record.index}"
                yield Difference(
                    task_id=record.task_id,
                    agent=record.agent,
                    text=f"is RUNNING for service {service}, and agent {record.agent} does not "
                    "run it",
                    hints=(
                        plan_hint("to launch it", "pod", "restart", pod, service=service),
                        plan_hint(
                            "if the agent has released its resources",
                            *("pod", "replace", pod),
                            service=service,
                        ),
                    ),
                )


def _ids(services: Records) -> Iterable[str]:
    for records in services.values():
        for record in records:
            yield record.task_id
            yield from (launch.task_id for launch in record.earlier)
