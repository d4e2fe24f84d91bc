"""The initial state of a new plan of a service, computed from its launched tasks (behaviour 3.6).

Tasks that are on their way to their goal with the target configuration are not relaunched: their
step adopts them. Canary gates and interrupts are not decided here: the plan's board puts gates
before the first steps that are not complete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseState, PlanState
from temporal_plans.domain.plans.plan import PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, TaskProgress, launched, reported
from temporal_plans.domain.services.comparison import differs, finished_once, goal_in, pod_of
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.names import task_instance_name

ADOPTION_TIMEOUT = timedelta(seconds=15)
"""A launch is reported sooner, or its activity is still running and its step at work."""


class Former(NamedTuple):
    """The plan that the new plan replaces, its state, and the service spec of its launches."""

    plan: PlanSpec
    state: PlanState
    spec: ServiceSpec

    @classmethod
    def forced(cls, plan: PlanSpec, steps: Iterable[str], spec: ServiceSpec) -> "Former":
        """Return a former plan of which only the forced steps are known, by ``phase/step``."""
        names = frozenset(steps)
        done = StepState(status=Status.COMPLETE, forced=True)
        phases = {
            i: PhaseState(
                steps={
                    k: done
                    for k, step in enumerate(phase.steps)
                    if f"{phase.name}/{step.name}" in names
                }
            )
            for i, phase in enumerate(plan.phases)
        }
        return cls(plan, PlanState(phases=phases), spec)

    def done(self) -> Iterator[tuple[tuple[str, str], tuple[StepSpec, StepState]]]:
        """Yield its complete steps, by the names of phase and step."""
        for i, phase in enumerate(self.plan.phases):
            states = self.state.phases.get(i, PhaseState()).steps
            for k, step in enumerate(phase.steps):
                if k in states and states[k].complete:
                    yield (phase.name, step.name), (step, states[k])


def initial_state(
    plan: PlanSpec,
    target: Configuration,
    records: Mapping[str, TaskRecord],
    former: Former | None = None,
    *,
    now: datetime | None = None,
) -> PlanState:
    """Return the state of a plan that starts now, without the steps that are new.

    A pod step is COMPLETE when every task of it has reached its goal with the target configuration
    (of ``target``, or of the step's own ``config_id``), is to be replaced by recovery, or has the
    goal ONCE and has finished. It is STARTING or STARTED when its other tasks are on their way to
    their goal. Else it is PENDING: also when some of its tasks were never launched. ``records`` by
    task instance name, after ``comparison.relabelled``.

    ``former`` adds what no record has: a pod step that an operator forced to complete stays
    complete while its pod does not differ, and so does any other complete step with the same work.
    Steps of recovery start as new. A launch without a report for ``ADOPTION_TIMEOUT`` before
    ``now`` is not adopted: it was cancelled before an agent took it.
    """
    done = dict(former.done()) if former else {}
    unchanged = _unchanged(former.spec, target.spec) if former else _no_pod
    reader = _Reader(target, records, now)

    def state(phase: str, step: StepSpec) -> StepState | None:
        old = done.get((phase, step.name))
        kept = old[1] if old is not None and old[0].work == step.work else None
        if not isinstance(step.work, PodWork):
            return _kept(kept, step) if kept else None
        if step.work.recovery is not None:
            return None
        found = None if step.errors else reader.state(step.work)
        if found is not None and found.complete:
            return found
        if kept is not None and kept.forced and unchanged(step.work.pod):
            return _kept(kept, step)
        return found

    return PlanState(
        phases={
            i: PhaseState(steps=states)
            for i, phase in enumerate(plan.phases)
            if (
                states := {
                    k: made
                    for k, step in enumerate(phase.steps)
                    if (made := state(phase.name, step)) is not None
                }
            )
        }
    )


def _kept(old: StepState, step: StepSpec) -> StepState:
    """Return a step that is complete from the start: not worked on in this run, so without
    times."""
    return StepState(
        status=Status.COMPLETE, forced=old.forced, errors=step.errors, result=old.result
    )


def _unchanged(old: ServiceSpec, new: ServiceSpec) -> Callable[[str], bool]:
    def unchanged(pod_type: str) -> bool:
        before, after = pod_of(old, pod_type), pod_of(new, pod_type)
        return before is not None and after is not None and not differs(before, after)

    return unchanged


def _no_pod(pod_type: str) -> bool:
    return False


class _Reader:
    """Computes the states of pod steps from the task records."""

    def __init__(
        self, target: Configuration, records: Mapping[str, TaskRecord], now: datetime | None
    ) -> None:
        self._target = target
        self._records = records
        self._now = now

    def state(self, work: PodWork) -> StepState | None:
        """Return the state of a step; None when it has to start as new."""
        names = [task_instance_name(work.pod, work.index, task) for task in work.tasks]
        records = [self._records[name] for name in names if name in self._records]
        if not records or len(records) < len(names):
            return None
        config_id = work.config_id or self._target.id
        unsettled = [record for record in records if not self._settled(record, config_id)]
        if not unsettled:
            return StepState(status=Status.COMPLETE)
        if not all(self._on_its_way(record, config_id) for record in unsettled):
            return None
        return _adopted([record for record in records if not _left_to_recovery(record)])

    def _on_its_way(self, record: TaskRecord, config_id: str) -> bool:
        late = self._now is not None and record.launched + ADOPTION_TIMEOUT < self._now
        expected = record.status is not None or not late
        return record.live and expected and record.config_id == config_id

    def _settled(self, record: TaskRecord, config_id: str) -> bool:
        if _left_to_recovery(record):
            return True
        goal = goal_in(self._target.spec, record)
        if goal is not None and finished_once(record, goal):
            return True
        return record.config_id == config_id and _reached(record)


def _left_to_recovery(record: TaskRecord) -> bool:
    """Whether recovery replaces the task. It replaces permanently failed tasks, except retired ones
    and ended tasks with the goal FINISH or ONCE: the plan that has those launches them, on other
    resources as well."""
    recoverable = record.live or record.goal == Goal.RUNNING
    return record.permanently_failed and not record.retired and recoverable


def _reached(record: TaskRecord) -> bool:
    """Whether a task has reached the goal of its launch. A paused task runs its placeholder, which
    never finishes the goal."""
    if record.paused and record.goal != Goal.RUNNING:
        return False
    return record.reached_goal


def _adopted(records: Sequence[TaskRecord]) -> StepState | None:
    """Return the state of a step as if it had launched these tasks itself; None when it would have
    to launch them again."""
    tasks = {record.task_id: _progress(record) for record in records}
    state = launched(StepState(), tasks, min(record.launched for record in records))
    for record in records:
        if record.status is not None:
            state = reported(state, record.status, Backoff(), record.status.at)
    return state if state.status in (Status.STARTING, Status.STARTED) else None


def _progress(record: TaskRecord) -> TaskProgress:
    check = record.check and not record.paused
    return TaskProgress(name=record.name, goal=Goal(record.goal), check=check)
