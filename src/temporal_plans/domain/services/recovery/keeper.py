"""The recovery state of a service, and the revisions of its standing plan (behaviour 6)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from temporal_plans.domain.owners.runs import RunBook, RunRecord
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.launchable import launchable_tasks
from temporal_plans.domain.services.plan_names import PRIORITIES, RECOVERY
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.book import (
    Recoverer,
    Recovery,
    RecoveryBook,
    RecoveryDecision,
    RecoveryReport,
    RecoverySituation,
    decide,
    has_launched,
    leased_to_others,
)
from temporal_plans.domain.services.recovery.delay import RestartDelay, after_end
from temporal_plans.domain.services.recovery.failed import (
    FailedPod,
    down_times,
    failed_pods,
    next_change,
)
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.model import CompactValue


class RecoveryState(CompactValue):
    """The state carried from run to run: the recoveries under way, as sent to the plan and as last
    reported by it; the back-off of tasks, by name; since when tasks are down, by id."""

    book: RecoveryBook = RecoveryBook()
    report: RecoveryReport = RecoveryReport()
    delays: dict[str, RestartDelay] = {}
    down: dict[str, datetime] = {}


@dataclass(frozen=True)
class RecoveryWorld:
    """The inputs of recovery, beside the task records. ``target`` is the spec in force, ``specs``
    are the kept specs by configuration id, ``plans`` the service's plans by name."""

    target: ServiceSpec
    specs: Mapping[str, ServiceSpec]
    plans: Mapping[str, PlanSpec]
    leases: LeaseState
    policy: RecoveryPolicy


@dataclass(frozen=True)
class RecoveryRules:
    """Developers' extensions: ``recoverers``, and the names of the ``strategies`` and
    ``step_kinds`` that their phases may use."""

    recoverers: Sequence[Recoverer] = ()
    strategies: Collection[str] = field(default_factory=frozenset[str])
    step_kinds: Collection[str] = field(default_factory=frozenset[str])


class RecoveryKeeper:
    """Decides from the task records how to revise the recovery plan."""

    def __init__(
        self, state: RecoveryState, *, tasks: TaskBook, runs: RunBook, rules: RecoveryRules
    ) -> None:
        """``runs``: the run history, in which every recovery is a run of the plan."""
        self._book = state.book
        self._report = state.report
        self._delays = dict(state.delays)
        self._down = dict(state.down)
        self._tasks = tasks
        self._runs = runs
        self._rules = rules
        self._due: datetime | None = None

    @property
    def state(self) -> RecoveryState:
        return RecoveryState(
            book=self._book, report=self._report, delays=self._delays, down=self._down
        )

    @property
    def due(self) -> datetime | None:
        """When to call ``tend`` again at the latest; None without need."""
        return self._due

    @property
    def idle(self) -> bool:
        """Whether no recovery is under way."""
        return not any(self._report.open(one) for one in self._book.recoveries)

    @property
    def configs(self) -> frozenset[str]:
        """The ids of configurations that recoveries may yet launch."""
        return frozenset(self._book.pending_configs(self._report).values())

    @property
    def revision(self) -> int:
        """The number of the newest revision of the plan."""
        return self._book.revision

    def is_cancelled(self, step: str) -> bool:
        """Whether a step belongs to a cancelled recovery."""
        return self._book.is_cancelled(step)

    # --- events ---

    def ended(self, record: TaskRecord, backoff: Backoff, now: datetime) -> None:
        """Update the back-off of a task that has ended and that no step follows."""
        if record.status is None or record.owner:
            return
        since = record.running_since
        ran = now - since if since is not None else None
        delay = after_end(self._delays.get(record.name), record.status.state, ran, backoff, now)
        if delay is None:
            self._delays.pop(record.name, None)
        else:
            self._delays[record.name] = delay

    def reported(self, report: RecoveryReport, now: datetime) -> None:
        """Take a report of the plan about its recoveries."""
        before, self._report = self._report, report
        for recovery in self._book.recoveries:
            if before.open(recovery) and not report.open(recovery):
                self._runs.end(RECOVERY, recovery.revision, _text(recovery), now)

    def forget_task(self, name: str) -> None:
        """Reset a task's back-off: an operator restarts it, or it was erased."""
        self._delays.pop(name, None)

    def restart(self, instance: str) -> None:
        """Restart the recovery of a pod: an operator restarts or replaces the pod."""
        for recovery in self._book.recoveries:
            if f"{recovery.pod}-{recovery.index}" == instance:
                self._book = self._book.restarted(recovery.pod, recovery.index)

    def begins(self, lease: Lease) -> None:
        """Take note that a step of the plan gets the lease of a pod. A pod that was down for too
        long is marked for replacement now (behaviour 6.4): until now it might have come back by
        itself."""
        for one in self._book.recoveries:
            if (
                one.permanent
                and one.instance == (lease.pod, lease.index)
                and self._report.open(one)
                and not has_launched(one, self._tasks.records)
            ):
                self._tasks.mark_for_replacement(lease.pod, lease.index)

    def lost(self) -> None:
        """Drop all recoveries: the plan was lost, and its next run has no phases."""
        self._book = self._book.cleared()
        self._report = RecoveryReport(revision=self._book.revision)

    # --- decisions ---

    def tend(self, world: RecoveryWorld, now: datetime) -> RecoveryDecision:
        """Decide how to revise the plan now, if at all; ``revision`` is the new revision's
        number."""
        records = self._tasks.records
        self._down = down_times(records, self._down, now)
        launchable = launchable_tasks(world.plans.values(), records)
        facts: dict[str, Any] = {
            "launchable": launchable,
            "overrides": self._tasks.overrides,
            "delays": self._delays,
            "policy": world.policy,
            "down_since": self._down,
            "now": now,
        }
        self._due = next_change(records, world.specs, **facts)
        unwanted = {name for name in records if name not in launchable} | {
            name
            for name, override in self._tasks.overrides.items()
            if override is GoalOverride.DECOMMISSIONED
        }
        pending = self._book.pending_configs(self._report)
        failed = failed_pods(records, world.specs, pending_configs=pending, **facts)
        decision = decide(
            self._book,
            [one for one in failed if one.ordered or not self._may_run_already(one)],
            self._report,
            RecoverySituation(service=world.target, records=dict(records), plans=dict(world.plans)),
            busy=leased_to_others(world.leases, priority=PRIORITIES[RECOVERY]),
            policy=world.policy,
            now=now,
            unwanted=unwanted,
            recoverers=self._rules.recoverers,
            check=partial(
                problems, strategies=self._rules.strategies, step_kinds=self._rules.step_kinds
            ),
        )
        self._remember(decision, now)
        return decision

    def _may_run_already(self, failed: FailedPod) -> bool:
        """Whether a task of the pod that this service has no memory of runs: a launch would double
        it, or end it unasked. An operator's command decides (behaviour 6.2)."""
        names = [task_instance_name(failed.pod, failed.index, task) for task in failed.tasks]
        return bool(self._tasks.strangers_of(names))

    def _remember(self, decision: RecoveryDecision, now: datetime) -> None:
        """Add dropped and new recoveries to the run history."""
        known = {(one.instance, one.revision) for one in self._book.recoveries}
        kept = {(one.instance, one.revision) for one in decision.book.recoveries}
        for one in self._book.recoveries:
            if (one.instance, one.revision) not in kept and self._report.open(one):
                self._runs.end(RECOVERY, one.revision, _text(one), now, superseded=True)
        self._book = decision.book
        for one in self._book.recoveries:
            if (one.instance, one.revision) not in known:
                run = RunRecord(
                    plan=RECOVERY,
                    run=one.revision,
                    started=now,
                    status=Status.IN_PROGRESS,
                    what=_text(one),
                )
                self._runs.add(run)


def _text(recovery: Recovery) -> str:
    how = "replaces" if recovery.permanent else "relaunches"
    return f"{how} {recovery.pod}-{recovery.index}:[{', '.join(recovery.tasks)}]"
