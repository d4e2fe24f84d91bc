"""The recoveries under way, and the revisions of the recovery plan (behaviour 6.1, 6.4).

The plan ``recovery`` exists as long as its service; the service decides its phases. A pod instance
has at most one recovery at a time: two would wait for the same reservation, and tasks that are
brought back one by one would block each other.

``decide`` is called after every event. It is idempotent: called again, it changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count, repeat
from typing import NamedTuple

from pydantic import AwareDatetime

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.board import PhaseState
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import record_of
from temporal_plans.domain.plans.strategies.record import Dependencies
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.services.plan_names import RECOVERY
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.names import MAX_POD_STEP_NAME, bounded
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import trace_of

_PARALLEL = StrategySpec(name="parallel")

_ENDED_LIMIT = 100
"""Ended recoveries that are kept by name, so that a later recovery replaces their phases."""

_REASON_LIMIT = 500
"""Characters of a step's reason."""


class Recovery(CompactValue):
    """One recovery, as it was sent to the plan in ``revision``.

    ``phases`` are its phases by name; ``launches`` the task ids that it replaces; ``due`` the end
    of the back-off then, ``slot`` its time among the automatic replacements. ``restart``: it is to
    be restarted if its pod is still down.
    """

    pod: str
    index: int
    tasks: tuple[str, ...]
    phases: tuple[str, ...]
    revision: int
    permanent: bool = False
    config_id: str = ""
    launches: tuple[str, ...] = ()
    due: AwareDatetime | None = None
    slot: AwareDatetime | None = None
    restart: bool = False

    @property
    def instance(self) -> tuple[str, int]:
        return self.pod, self.index

    @property
    def names(self) -> list[str]:
        """The names of its task instances."""
        return [task_instance_name(self.pod, self.index, task) for task in self.tasks]


class RecoveryBook(CompactValue):
    """All recoveries under way and the latest ended ones, oldest first. ``revision`` is the last
    that was sent; ``replaced`` the latest slot of an automatic replacement."""

    revision: int = 0
    recoveries: tuple[Recovery, ...] = ()
    replaced: AwareDatetime | None = None

    def restarted(self, pod: str, index: int) -> "RecoveryBook":
        """Restart the recovery of a pod, at once: an operator restarts or replaces the pod."""
        return self.but(
            recoveries=tuple(
                one.but(restart=True) if one.instance == (pod, index) else one
                for one in self.recoveries
            )
        )

    def is_cancelled(self, step: str) -> bool:
        """Whether a step (service/plan/phase/step) belongs to a cancelled recovery, which the plan
        may not have dropped yet: its pod came back, and must not be launched as it was before."""
        plan, phase = _plan_and_phase(step)
        return plan == RECOVERY and not any(phase in one.phases for one in self.recoveries)

    def cleared(self) -> "RecoveryBook":
        """Drop all recoveries: the plan was lost, and its next run has no phases. Revisions count
        on."""
        return self.but(recoveries=())

    def pending_configs(self, report: "RecoveryReport") -> Mapping[tuple[str, int], str]:
        """Return the configurations that recoveries under way may yet launch, by pod instance."""
        return {
            one.instance: one.config_id
            for one in self.recoveries
            if one.config_id and report.open(one)
        }


class RecoveryReport(CompactValue):
    """The last report of the recovery plan: its incomplete phases, after ``revision``."""

    revision: int = 0
    incomplete: tuple[str, ...] = ()

    def open(self, recovery: Recovery) -> bool:
        """Whether the recovery is under way, or not yet received by the plan."""
        return recovery.revision > self.revision or not set(recovery.phases).isdisjoint(
            self.incomplete
        )


@dataclass(frozen=True, slots=True)
class RecoverySituation:
    """The service as recovery sees it: its target, its task records by task instance name, its
    plans by name. Read-only."""

    service: ServiceSpec
    records: Mapping[str, TaskRecord]
    plans: Mapping[str, PlanSpec] = field(default_factory=dict[str, PlanSpec])


Recoverer = Callable[[FailedPod, RecoverySituation], Sequence[PhaseSpec] | None]
"""A developer's own recovery: return the phases that bring a pod back, or None to leave the pod to
the next recoverer, and at last to the default phase (behaviour 6.10).

It runs in the Service workflow: it must be deterministic and quick, and use nothing but its
arguments. The phases run at the same time; their steps on the failed pod are best made with
``FailedPod.work``. When none of their steps is marked as a recovery, the first step on the pod is
the recovery of its kind, and all others launch in the place that it reserved.
"""

Busy = Callable[[FailedPod], bool]
"""Whether another plan is at work on a pod: then recovery leaves it alone."""


Check = Callable[[PlanSpec], Sequence[Reason]]
"""Return the problems of a plan, given this worker's strategies and step kinds."""


class RecoveryPhase(NamedTuple):
    """A phase for the recovery plan, and its initial state."""

    spec: PhaseSpec
    state: PhaseState


class RecoveryDecision(NamedTuple):
    """The new book, and the changes to send to the plan under the book's ``revision``: phases to
    ``put`` (replacing those of the same name) and to ``drop``. ``problems``: recoverers that
    failed, for the log; the default was taken."""

    book: RecoveryBook
    put: tuple[RecoveryPhase, ...] = ()
    drop: tuple[str, ...] = ()
    problems: tuple[Reason, ...] = ()

    @property
    def revises(self) -> bool:
        """Whether there are changes to send."""
        return bool(self.put or self.drop)


def has_launched(recovery: Recovery, records: Mapping[str, TaskRecord]) -> bool:
    """Whether the recovery plan launched one of its tasks since; launches of other plans, and tasks
    that came back by themselves, don't count."""
    return any(
        record is not None
        and record.task_id not in recovery.launches
        and _plan_of(record) == RECOVERY
        for record in map(records.get, recovery.names)
    )


def leased_to_others(leases: LeaseState, *, plan: str = RECOVERY, priority: int) -> Busy:
    """Return a ``Busy`` for pods of which another plan leases a task to be launched, or waits for
    such a lease before this plan (behaviour 4.2, 6.4)."""
    others = [lease for lease in leases.held if lease.plan != plan]
    others += [w for w in leases.wanted if w.plan != plan and w.priority < priority]

    def busy(failed: FailedPod) -> bool:
        want = Lease(
            plan=plan, phase="", step=0, pod=failed.pod, index=failed.index, tasks=failed.tasks
        )
        return any(want.conflicts(lease) for lease in others)

    return busy


def decide(
    book: RecoveryBook,
    failed: Iterable[FailedPod],
    report: RecoveryReport,
    situation: RecoverySituation,
    *,
    busy: Busy,
    policy: RecoveryPolicy,
    now: datetime,
    unwanted: AbstractSet[str] = frozenset(),
    recoverers: Sequence[Recoverer] = (),
    check: Check = plan_problems,
) -> RecoveryDecision:
    """Decide how to change the recovery plan.

    A recovery under way is left alone, unless its pod must now be replaced, more of the pod has
    failed, its back-off or its configuration has changed, or it is marked for a restart. It is
    dropped when its pod came back without it, or when one of its tasks is ``unwanted`` (task
    instance names that are being removed). An ended recovery is replaced by the next recovery of
    the same tasks. ``check`` checks the phases of recoverers.
    """
    decider = _Decider(book, report, situation, policy, now, recoverers, check)
    return decider.decide(list(failed), busy, unwanted)


def recovery_phase(
    failed: FailedPod, *, until: datetime | None = None, reason: str = ""
) -> RecoveryPhase:
    """Return the default: one phase with one step of its name, ``hello-0:[server]`` (behaviour
    6.1).

    The step reads DELAYED until the pod's back-off is over, or until ``until``; when it fails too,
    its back-off continues the delays so far. ``reason`` replaces the pod's ``why``.
    """
    name = f"{failed.name}:[{', '.join(failed.tasks)}]"
    step = StepSpec(name=bounded(name, MAX_POD_STEP_NAME), work=failed.work())
    spec = PhaseSpec(name=bounded(name), strategy=_PARALLEL, steps=(step,))
    return RecoveryPhase(spec, _beginning(spec, failed, until or failed.delayed_until, reason))


class _Decider:
    """The computation of one decision."""

    def __init__(
        self,
        book: RecoveryBook,
        report: RecoveryReport,
        situation: RecoverySituation,
        policy: RecoveryPolicy,
        now: datetime,
        recoverers: Sequence[Recoverer],
        check: Check,
    ) -> None:
        self._book = book
        self._report = report
        self._situation = situation
        self._policy = policy
        self._now = now
        self._recoverers = recoverers
        self._check = check
        self._revision = book.revision + 1
        self._replaced = book.replaced
        self._kept = list(book.recoveries)
        self._put: list[RecoveryPhase] = []
        self._drop: dict[str, None] = {}
        self._problems: list[Reason] = []

    def decide(
        self, failed: Sequence[FailedPod], busy: Busy, unwanted: AbstractSet[str]
    ) -> RecoveryDecision:
        down = {pod.instance for pod in failed}
        for recovery in [one for one in self._kept if self._report.open(one)]:
            came_back = recovery.instance not in down and not self._launched(recovery)
            if came_back or not unwanted.isdisjoint(recovery.names):
                self._remove(recovery)
        for pod in failed:
            if not busy(pod):
                self._recover(pod)
        return self._decision()

    def _decision(self) -> RecoveryDecision:
        put = {phase.spec.name for phase in self._put}
        drop = tuple(name for name in self._drop if name not in put)
        revision = self._revision if put or drop else self._book.revision
        book = RecoveryBook(
            revision=revision, recoveries=tuple(self._within_bounds()), replaced=self._replaced
        )
        return RecoveryDecision(book, tuple(self._put), drop, tuple(self._problems))

    def _within_bounds(self) -> list[Recovery]:
        over = [one for one in self._kept if not self._report.open(one)]
        forgotten = {id(one) for one in over[: max(len(over) - _ENDED_LIMIT, 0)]}
        return [one for one in self._kept if id(one) not in forgotten]

    # --- one pod ---

    def _recover(self, failed: FailedPod) -> None:
        under_way = self._under_way(failed)
        if under_way is not None:
            if not self._outdated(under_way, failed):
                return
            failed = self._widened(under_way, failed)
            self._remove(under_way)
        for old in [one for one in self._kept if _shares(one, failed)]:
            self._remove(old)
        slot = self._slot(failed, under_way)
        phases = self._phases(failed, slot)
        self._put += phases
        self._kept.append(
            Recovery(
                pod=failed.pod,
                index=failed.index,
                tasks=failed.tasks,
                phases=tuple(phase.spec.name for phase in phases),
                revision=self._revision,
                permanent=failed.permanent,
                config_id=failed.config_id,
                launches=self._launches(failed),
                due=failed.delayed_until,
                slot=slot,
            )
        )

    def _under_way(self, failed: FailedPod) -> Recovery | None:
        return next(
            (
                one
                for one in self._kept
                if one.instance == failed.instance and self._report.open(one)
            ),
            None,
        )

    def _outdated(self, recovery: Recovery, failed: FailedPod) -> bool:
        launched = self._launched(recovery)
        return (
            recovery.restart
            or recovery.config_id != failed.config_id
            or not set(failed.tasks) <= set(recovery.tasks)
            or (failed.permanent and (launched or not recovery.permanent))
            or (not launched and self._wait(recovery.due) != self._wait(failed.delayed_until))
        )

    def _widened(self, recovery: Recovery, failed: FailedPod) -> FailedPod:
        """Add the tasks that the recovery has launched and not completed: a pod has only one
        recovery, which also completes the work of the one that it replaces."""
        if not self._launched(recovery):
            return failed
        more = tuple(task for task in recovery.tasks if task not in failed.tasks)
        return failed.but(tasks=(*failed.tasks, *more)) if more else failed

    def _launched(self, recovery: Recovery) -> bool:
        return has_launched(recovery, self._situation.records)

    def _launches(self, failed: FailedPod) -> tuple[str, ...]:
        names = (task_instance_name(failed.pod, failed.index, task) for task in failed.tasks)
        records = (self._situation.records.get(name) for name in names)
        return tuple(record.task_id for record in records if record is not None)

    def _remove(self, recovery: Recovery) -> None:
        self._kept = [one for one in self._kept if one is not recovery]
        self._drop.update(dict.fromkeys(recovery.phases))

    # --- times ---

    def _wait(self, due: datetime | None) -> datetime | None:
        """Return the end of a back-off, if it is in the future."""
        return due if due is not None and due > self._now else None

    def _slot(self, failed: FailedPod, before: Recovery | None) -> datetime | None:
        """Return the slot of an automatic replacement: some time after the one before it."""
        if not failed.permanent or failed.ordered:
            return None
        if before is not None and before.slot is not None and not self._launched(before):
            return before.slot
        delay = self._policy.min_replace_delay
        slot = self._now if self._replaced is None else max(self._now, self._replaced + delay)
        self._replaced = slot
        return slot

    # --- phases ---

    def _phases(self, failed: FailedPod, slot: datetime | None) -> list[RecoveryPhase]:
        slot_wait = self._wait(slot)
        until = max((t for t in (failed.delayed_until, slot_wait) if t is not None), default=None)
        reason = failed.why
        if slot_wait is not None:
            apart = self._policy.min_replace_delay.total_seconds()
            reason = f"{reason}; replacements are at least {apart:g} s apart"
        phases = self._own_phases(failed) or [recovery_phase(failed).spec]
        taken = {name for one in self._kept for name in one.phases}
        named: list[RecoveryPhase] = []
        for phase in phases:
            spec = phase.but(name=_free(phase.name, failed, taken))
            taken.add(spec.name)
            named.append(RecoveryPhase(spec, _beginning(spec, failed, until, reason)))
        return named

    def _own_phases(self, failed: FailedPod) -> list[PhaseSpec] | None:
        """Return the phases of the first recoverer that has some, if they can run."""
        for recoverer in self._recoverers:
            trace = ""
            try:
                phases = recoverer(failed, self._situation)
                if phases is None:
                    continue
                adopted = _adopted(list(phases), failed)
                plan = PlanSpec(name=RECOVERY, strategy=_PARALLEL, phases=adopted)
                faults = [str(problem) for problem in self._check(plan)]
            except Exception as error:  # the developer's own code
                adopted, faults = (), [f"{type(error).__name__}: {error}"]
                trace = trace_of(error)
            if not faults:
                return list(adopted)
            name = getattr(recoverer, "__qualname__", repr(recoverer))
            text = f"the recoverer {name} failed for {failed.name}, the default recovery is used"
            problem = shortened(f"{text}: {'; '.join(faults)}")
            self._problems.append(Reason(problem=problem, trace=trace))
            return None
        return None


def _shares(recovery: Recovery, failed: FailedPod) -> bool:
    return recovery.instance == failed.instance and not set(recovery.tasks).isdisjoint(failed.tasks)


def _free(name: str, failed: FailedPod, taken: AbstractSet[str]) -> str:
    """Return a name that no other recovery's phase has: it would replace that phase."""
    if name not in taken:
        return name
    own = f"{failed.name} {name}"
    numbered = (bounded(own if n == 1 else f"{own} ({n})") for n in count(1))
    return next(one for one in numbered if one not in taken)


def _plan_of(record: TaskRecord) -> str:
    """Return the name of the plan that launched a task."""
    return _plan_and_phase(record.step)[0]


def _plan_and_phase(step: str) -> tuple[str, str]:
    """Return the plan and phase in service/plan/phase/step; only the service's name has slashes."""
    names = step.split("/")
    return (names[-3], names[-2]) if len(names) > 2 else ("", "")


def _adopted(phases: Sequence[PhaseSpec], failed: FailedPod) -> tuple[PhaseSpec, ...]:
    """Return the phases with their steps on the failed pod marked as its recovery."""
    own = [
        step.work
        for phase in phases
        for step in phase.steps
        if isinstance(step.work, PodWork) and (step.work.pod, step.work.index) == failed.instance
    ]
    if any(work.recovery is not None for work in own):
        return tuple(phases)
    kinds = chain([failed.recovery], repeat("transient"))

    def adopted(step: StepSpec) -> StepSpec:
        work = step.work
        if not isinstance(work, PodWork) or (work.pod, work.index) != failed.instance:
            return step
        config_id = work.config_id or failed.config_id
        return step.but(work=work.but(recovery=next(kinds), config_id=config_id))

    return tuple(phase.but(steps=tuple(adopted(step) for step in phase.steps)) for phase in phases)


def _beginning(
    spec: PhaseSpec, failed: FailedPod, until: datetime | None, reason: str
) -> PhaseState:
    """Return the initial state: the first steps wait for ``until``, and their back-off
    continues."""
    record = record_of(spec.strategy.name)
    in_order = record is not None and record.dependencies is Dependencies.EARLIER
    steps: dict[int, StepState] = {}
    for index, step in enumerate(spec.steps):
        if step.errors:
            continue
        state = StepState(delays=failed.delays if isinstance(step.work, PodWork) else {})
        first = not step.depends_on and (not in_order or index == 0)
        if until is not None and first:
            state = state.but(
                status=Status.DELAYED,
                delayed_until=until,
                reason=shortened(reason or failed.why, _REASON_LIMIT),
            )
        if state != StepState():
            steps[index] = state
    return PhaseState(steps=steps)
