"""Which recoveries are under way, and how the recovery plan is to be revised (reference 6.1, 6.4).

The plan ``recovery`` stands for the life of its service; the service decides what is in it. There
is never more than one recovery at a time for a pod instance: two would wait for the same
reservation, and tasks that are brought back one by one would stand in each other's way.

``decide`` is asked after whatever happened. Asked again about the same, it changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count, repeat
from typing import NamedTuple

from pydantic import AwareDatetime

from temporal_plans.domain.board import PhaseState
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.names import MAX_POD_STEP_NAME, bounded
from temporal_plans.domain.plan import PhaseSpec, PlanSpec, PodWork, StepSpec, StrategySpec
from temporal_plans.domain.plan_check import problems as plan_problems
from temporal_plans.domain.recovery import FailedPod
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.service import ServiceSpec, task_instance_name
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies import CANARIES
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.domain.transitions import StepState, shortened

RECOVERY = "recovery"

_PARALLEL = StrategySpec(name="parallel")

_KEPT = 100
"""Recoveries that are over and still known by name, so that a later one takes their place."""

_REASON = 500
"""Characters of a step's reason."""


class Recovery(CompactValue):
    """One recovery, as the plan was told of it in ``revision``.

    ``phases`` are its phases by name; ``launches`` the task ids that it replaces; ``due`` the end
    of the back-off then, ``slot`` its turn among the replacements that nobody ordered. ``afresh``:
    it is to begin anew if its pod is still down.
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
    afresh: bool = False

    @property
    def instance(self) -> tuple[str, int]:
        return self.pod, self.index

    @property
    def names(self) -> list[str]:
        """Its task instances."""
        return [task_instance_name(self.pod, self.index, task) for task in self.tasks]


class RecoveryBook(CompactValue):
    """All recoveries under way and those lately over, oldest first. ``revision`` is the last that
    was sent; ``replaced`` the latest turn given to a replacement that nobody ordered."""

    revision: int = 0
    recoveries: tuple[Recovery, ...] = ()
    replaced: AwareDatetime | None = None

    def afresh(self, pod: str, index: int) -> "RecoveryBook":
        """Somebody restarts or replaces the pod: what is under way for it begins anew, at once."""
        return self.but(
            recoveries=tuple(
                one.but(afresh=True) if one.instance == (pod, index) else one
                for one in self.recoveries
            )
        )

    def called_off(self, step: str) -> bool:
        """Whether a step (service/plan/phase/step) is of a recovery that the plan was told to drop,
        and may not have dropped yet: its pod came back, and must not be launched as it was before.
        """
        plan, phase = _plan_and_phase(step)
        return plan == RECOVERY and not any(phase in one.phases for one in self.recoveries)

    def emptied(self) -> "RecoveryBook":
        """The plan was lost and begins with no phases. Its revisions count on."""
        return self.but(recoveries=())

    def promised(self, report: "RecoveryReport") -> Mapping[tuple[str, int], str]:
        """The configurations that recoveries under way may yet launch, by pod instance."""
        return {
            one.instance: one.config_id
            for one in self.recoveries
            if one.config_id and report.open(one)
        }


class RecoveryReport(CompactValue):
    """What the recovery plan last said: its phases that are not complete, after ``revision``."""

    revision: int = 0
    incomplete: tuple[str, ...] = ()

    def open(self, recovery: Recovery) -> bool:
        """Whether it is under way, or the plan has not even heard of it."""
        return recovery.revision > self.revision or not set(recovery.phases).isdisjoint(
            self.incomplete
        )


@dataclass(frozen=True, slots=True)
class RecoverySituation:
    """The service as recovery sees it: its target, its task records by task instance name, its
    plans by name. Not to be changed."""

    service: ServiceSpec
    records: Mapping[str, TaskRecord]
    plans: Mapping[str, PlanSpec] = field(default_factory=dict[str, PlanSpec])


Recoverer = Callable[[FailedPod, RecoverySituation], Sequence[PhaseSpec] | None]
"""A developer's own recovery: the phases that bring a pod back, or None for a pod that it leaves to
the next one, and at last to the default phase (reference 6.10).

It runs in the Service workflow: it must be deterministic, quick, and look at nothing but its
arguments. The phases run at the same time; their steps on the failed pod are best made with
``FailedPod.work``. When no step of theirs says so, the first one on the pod is the recovery of its
kind, and all others launch in the place that it found.
"""

Busy = Callable[[FailedPod], bool]
"""Whether somebody else is at work on a pod: then it is not touched."""


Check = Callable[[PlanSpec], Sequence[Problem]]
"""What is wrong with a plan, by the strategies and step kinds that this worker knows."""


class RecoveryPhase(NamedTuple):
    """A phase for the recovery plan, and the state that it begins in."""

    spec: PhaseSpec
    state: PhaseState


class RecoveryDecision(NamedTuple):
    """The book as it is now, and what to tell the plan under the book's ``revision``: phases to
    ``put`` (in place of those of the same name) and to ``drop``. ``problems``: recoverers that
    failed, for the log; the default was taken."""

    book: RecoveryBook
    put: tuple[RecoveryPhase, ...] = ()
    drop: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def revises(self) -> bool:
        return bool(self.put or self.drop)


def has_launched(recovery: Recovery, records: Mapping[str, TaskRecord]) -> bool:
    """Whether the recovery plan launched one of its tasks since; nobody else's launch, and no task
    that came back by itself, counts."""
    return any(
        record is not None
        and record.task_id not in recovery.launches
        and _plan_of(record) == RECOVERY
        for record in map(records.get, recovery.names)
    )


def leased_to_others(leases: LeaseState, *, plan: str = RECOVERY, priority: int) -> Busy:
    """Busy are pods of which another plan holds a task to be launched, or wants one and comes
    before this plan (reference 4.2, 6.4)."""
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
    """What to change about the recovery plan.

    A recovery under way is left alone, unless its pod must now be replaced, more of the pod has
    failed, its back-off or its configuration is another, or somebody wants it afresh. It is dropped
    when its pod came back without it, or when one of its tasks is ``unwanted`` (task instance names
    that are being taken away). One that is over gives its place to the next of the same tasks.
    ``check`` is asked about the phases of recoverers.
    """
    decider = _Decider(book, report, situation, policy, now, recoverers, check)
    return decider.decide(list(failed), busy, unwanted)


def recovery_phase(
    failed: FailedPod, *, until: datetime | None = None, reason: str = ""
) -> RecoveryPhase:
    """The default: one phase of one step of the same name, ``hello-0:[server]`` (reference 6.1).

    The step reads DELAYED until the pod's back-off is over, or until ``until``; it goes on with the
    delays so far when it fails in its turn. ``reason`` stands for the pod's ``why``.
    """
    name = f"{failed.name}:[{', '.join(failed.tasks)}]"
    step = StepSpec(name=bounded(name, MAX_POD_STEP_NAME), work=failed.work())
    spec = PhaseSpec(name=bounded(name), strategy=_PARALLEL, steps=(step,))
    return RecoveryPhase(spec, _beginning(spec, failed, until or failed.delayed_until, reason))


class _Decider:
    """One decision in the making."""

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
        self._problems: list[str] = []

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
        forgotten = {id(one) for one in over[: max(len(over) - _KEPT, 0)]}
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
            recovery.afresh
            or recovery.config_id != failed.config_id
            or not set(failed.tasks) <= set(recovery.tasks)
            or (failed.permanent and (launched or not recovery.permanent))
            or (not launched and self._wait(recovery.due) != self._wait(failed.delayed_until))
        )

    def _widened(self, recovery: Recovery, failed: FailedPod) -> FailedPod:
        """With what the recovery in its place has launched and not seen through: only one is at
        work on a pod, and it finishes what it replaces."""
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

    # --- when ---

    def _wait(self, due: datetime | None) -> datetime | None:
        """The end of a back-off, if that is still to come."""
        return due if due is not None and due > self._now else None

    def _slot(self, failed: FailedPod, before: Recovery | None) -> datetime | None:
        """The turn of a replacement that nobody ordered: some time after the one before it."""
        if not failed.permanent or failed.ordered:
            return None
        if before is not None and before.slot is not None and not self._launched(before):
            return before.slot
        delay = self._policy.min_replace_delay
        slot = self._now if self._replaced is None else max(self._now, self._replaced + delay)
        self._replaced = slot
        return slot

    # --- what ---

    def _phases(self, failed: FailedPod, slot: datetime | None) -> list[RecoveryPhase]:
        turn = self._wait(slot)
        until = max((t for t in (failed.delayed_until, turn) if t is not None), default=None)
        reason = failed.why
        if turn is not None:
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
        """The developer's, if one of the recoverers has any, and they can run."""
        for recoverer in self._recoverers:
            try:
                phases = recoverer(failed, self._situation)
                if phases is None:
                    continue
                adopted = _adopted(list(phases), failed)
                plan = PlanSpec(name=RECOVERY, strategy=_PARALLEL, phases=adopted)
                faults = [str(problem) for problem in self._check(plan)]
            except Exception as error:  # the developer's own code
                adopted, faults = (), [f"{type(error).__name__}: {error}"]
            if not faults:
                return list(adopted)
            name = getattr(recoverer, "__qualname__", repr(recoverer))
            text = f"the recoverer {name} failed for {failed.name}, the default recovery is used"
            self._problems.append(shortened(f"{text}: {'; '.join(faults)}"))
            return None
        return None


def _shares(recovery: Recovery, failed: FailedPod) -> bool:
    return recovery.instance == failed.instance and not set(recovery.tasks).isdisjoint(failed.tasks)


def _free(name: str, failed: FailedPod, taken: AbstractSet[str]) -> str:
    """A name that no other recovery's phase has: it would take that one's place."""
    if name not in taken:
        return name
    own = f"{failed.name} {name}"
    numbered = (bounded(own if n == 1 else f"{own} ({n})") for n in count(1))
    return next(one for one in numbered if one not in taken)


def _plan_of(record: TaskRecord) -> str:
    """The name of the plan that launched it."""
    return _plan_and_phase(record.step)[0]


def _plan_and_phase(step: str) -> tuple[str, str]:
    """The names in service/plan/phase/step, of which only the service's has slashes of its own."""
    names = step.split("/")
    return (names[-3], names[-2]) if len(names) > 2 else ("", "")


def _adopted(phases: Sequence[PhaseSpec], failed: FailedPod) -> tuple[PhaseSpec, ...]:
    """The phases with their steps on the failed pod marked as its recovery (see ``Recoverer``)."""
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
    """The state to begin in: the steps that would be first wait for ``until``, and back-off goes on
    from where it was."""
    inner = CANARIES.get(spec.strategy.name, spec.strategy.name)
    steps: dict[int, StepState] = {}
    for index, step in enumerate(spec.steps):
        if step.errors:
            continue
        state = StepState(delays=failed.delays if isinstance(step.work, PodWork) else {})
        first = not step.depends_on and (inner != "serial" or index == 0)
        if until is not None and first:
            state = state.but(
                status=Status.DELAYED,
                delayed_until=until,
                reason=shortened(reason or failed.why, _REASON),
            )
        if state != StepState():
            steps[index] = state
    return PhaseState(steps=steps)
