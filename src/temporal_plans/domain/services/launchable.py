"""Which tasks a service's plans launch."""

from collections.abc import Iterable, Mapping

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.records import TaskRecord


def launchable_tasks(
    plans: Iterable[PlanSpec], records: Mapping[str, TaskRecord]
) -> frozenset[str]:
    """Return the recorded task instances that some of these plans launch (behaviour 6.2).

    A step with errors launches nothing; the tasks of its pod count all the same, else a mistake in
    a plan would leave running tasks without recovery.
    """
    launched = Launchable(plans)
    return frozenset(
        name
        for name, record in records.items()
        if launched.has(record.pod, record.index, record.task)
    )


class Launchable:
    """The tasks that some of these plans launch; see ``launchable_tasks``."""

    def __init__(self, plans: Iterable[PlanSpec]) -> None:
        works = [
            step.work
            for plan in plans
            for phase in plan.phases
            for step in phase.steps
            if isinstance(step.work, PodWork)
        ]
        self._tasks = {(work.pod, work.index, task) for work in works for task in work.tasks}
        self._faulty = {(work.pod, work.index) for work in works if not work.tasks}

    def has(self, pod: str, index: int, task: str) -> bool:
        return (pod, index, task) in self._tasks or (pod, index) in self._faulty


def instances(records: Iterable[TaskRecord]) -> list[list[TaskRecord]]:
    """Return the records of each pod instance that may need recovery, both in order of name. It is
    called after every event, so the healthy pods of a large service are skipped quickly."""
    every = list(records)
    unhealthy = {(one.pod, one.index) for one in every if one.permanently_failed or not one.live}
    groups: dict[tuple[str, int], list[TaskRecord]] = {pod: [] for pod in sorted(unhealthy)}
    for record in every:
        if (record.pod, record.index) in groups:
            groups[record.pod, record.index].append(record)
    return [sorted(group, key=lambda record: record.name) for group in groups.values()]
