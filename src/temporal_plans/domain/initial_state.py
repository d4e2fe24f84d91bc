"""The state that a new plan of a service begins in, from what is launched already (reference 3.6).

What the reference kills and launches again, because a new scheduler can't tell how far it got, goes
on here: a step whose tasks were launched with the target configuration and are on their way takes
them up. Canary gates and interrupts are not decided here: the plan's board puts gates before the
first steps that are not complete.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.board import PhaseState, PlanState
from temporal_plans.domain.comparison import differs, finished_once, goal_in, pod_of
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.plan import PlanSpec, PodWork, StepSpec
from temporal_plans.domain.service import Goal, ServiceSpec, task_instance_name
from temporal_plans.domain.status import Status
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.domain.transitions import StepState, TaskProgress, launched, reported

HEARD_WITHIN = timedelta(seconds=15)
"""A launch is heard of sooner, or its activity is still under way and its step at work."""


class Former(NamedTuple):
    """The plan that the new one takes the place of, how far it got, and the service that its pods
    were launched as."""

    plan: PlanSpec
    state: PlanState
    spec: ServiceSpec

    @classmethod
    def forced(cls, plan: PlanSpec, steps: Iterable[str], spec: ServiceSpec) -> "Former":
        """One of which only the steps are known that somebody forced to complete, by their
        ``phase/step``."""
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
        """Its complete steps, by the names of phase and step."""
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
    """The state of a plan that begins now; only what is not as new is in it.

    A pod step is COMPLETE when every task of it has reached its goal with the target configuration
    (of ``target``, or of the step's own ``config_id``), is to be replaced by recovery, or has
    finished and is to run only once. It is STARTING or STARTED when those of its tasks that have
    not reached their goal are on their way there. Else it is PENDING: also when some of its tasks
    were never launched, which the reference overlooks. ``records`` by task instance name, after
    ``comparison.relabelled``.

    From ``former`` comes what no record tells: a pod step that somebody forced to complete stays
    so while its pod does not differ, and any other step that was complete and does the same work.
    Steps of recovery begin as new. Of a launch that nothing was heard of for ``HEARD_WITHIN``
    before ``now`` nothing is expected any more: it was cancelled before an agent took it.
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
    """Complete from the start: not worked on in this run, so without its times."""
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
    """Reads off the task records how far pod steps are."""

    def __init__(
        self, target: Configuration, records: Mapping[str, TaskRecord], now: datetime | None
    ) -> None:
        self._target = target
        self._records = records
        self._now = now

    def state(self, work: PodWork) -> StepState | None:
        """None when the step has to begin from nothing."""
        names = [task_instance_name(work.pod, work.index, task) for task in work.tasks]
        records = [self._records[name] for name in names if name in self._records]
        if not records or len(records) < len(names):
            return None
        config_id = work.config_id or self._target.id
        open_ones = [record for record in records if not self._settled(record, config_id)]
        if not open_ones:
            return StepState(status=Status.COMPLETE)
        if not all(self._on_its_way(record, config_id) for record in open_ones):
            return None
        return _taken_up([record for record in records if not _left_to_recovery(record)])

    def _on_its_way(self, record: TaskRecord, config_id: str) -> bool:
        late = self._now is not None and record.launched + HEARD_WITHIN < self._now
        heard = record.status is not None or not late
        return record.live and heard and record.config_id == config_id

    def _settled(self, record: TaskRecord, config_id: str) -> bool:
        if _left_to_recovery(record):
            return True
        goal = goal_in(self._target.spec, record)
        if goal is not None and finished_once(record, goal):
            return True
        return record.config_id == config_id and _reached(record)


def _left_to_recovery(record: TaskRecord) -> bool:
    """Recovery replaces what failed for good, but not what no plan had any more: the plan that has
    that again launches it, on other resources as well. So it does with what was to finish and ended
    without: recovery looks after what is meant to run."""
    theirs = record.live or record.goal == Goal.RUNNING
    return record.permanently_failed and not record.off and theirs


def _reached(record: TaskRecord) -> bool:
    """Has reached the goal that it was launched for. What is paused runs its placeholder, by which
    nothing is ever finished."""
    if record.paused and record.goal != Goal.RUNNING:
        return False
    return record.reached_goal


def _taken_up(records: Sequence[TaskRecord]) -> StepState | None:
    """The state of a step that had launched these tasks itself, by the transitions that it would
    have gone through; None when by them it has to launch them again."""
    tasks = {record.task_id: _progress(record) for record in records}
    state = launched(StepState(), tasks, min(record.launched for record in records))
    for record in records:
        if record.status is not None:
            state = reported(state, record.status, Backoff(), record.status.at)
    return state if state.status in (Status.STARTING, Status.STARTED) else None


def _progress(record: TaskRecord) -> TaskProgress:
    check = record.check and not record.paused
    return TaskProgress(name=record.name, goal=Goal(record.goal), check=check)
