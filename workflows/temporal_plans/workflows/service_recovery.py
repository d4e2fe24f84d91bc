"""A service's recovery: what failed, and what its standing plan is told to do about it (ref. 6)."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.recovery import down_times, failed_pods, launchable_tasks, next_change
from temporal_plans.domain.recovery_book import (
    Recovery,
    RecoveryDecision,
    RecoveryReport,
    RecoverySituation,
    decide,
    has_launched,
    leased_to_others,
)
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.restart_delay import after_end
from temporal_plans.domain.status import Status
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.plan import PhasePut, PlanRevision
from temporal_plans.messages.service import PlanReport, RecoveryState, RunRecord
from temporal_plans.workflows.registry import Registry
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_plans import PRIORITY, RECOVERY, ServicePlans
from temporal_plans.workflows.service_tasks import ServiceTasks


class ServiceRecovery:
    """Looks at the records and revises the plan. ``problem`` takes what developers' code did
    wrong."""

    def __init__(
        self,
        state: RecoveryState,
        *,
        tasks: ServiceTasks,
        configs: ServiceConfigs,
        plans: ServicePlans,
        registry: Registry,
        problem: Callable[[str, str], None],
    ) -> None:
        self._book = state.book
        self._report = state.report
        self._delays = dict(state.delays)
        self._down = dict(state.down)
        self._tasks = tasks
        self._configs = configs
        self._plans = plans
        self._registry = registry
        self._problem = problem
        self._due: datetime | None = None

    @property
    def state(self) -> RecoveryState:
        return RecoveryState(
            book=self._book, report=self._report, delays=self._delays, down=self._down
        )

    @property
    def due(self) -> datetime | None:
        """When it is to be tended again, whatever else happens."""
        return self._due

    @property
    def idle(self) -> bool:
        """Whether nothing is being brought back."""
        return not any(self._report.open(one) for one in self._book.recoveries)

    @property
    def configs(self) -> frozenset[str]:
        """Configurations that are yet to be launched."""
        return frozenset(self._book.promised(self._report).values())

    def called_off(self, step: str) -> bool:
        """Whether a step belongs to a recovery that is no longer wanted."""
        return self._book.called_off(step)

    # --- what comes in ---

    def ended(self, record: TaskRecord, backoff: Backoff, now: datetime) -> None:
        """A task that no step follows any more has ended: its back-off grows, or is forgotten."""
        if record.status is None or record.owner:
            return
        since = record.running_since
        ran = now - since if since is not None else None
        delay = after_end(self._delays.get(record.name), record.status.state, ran, backoff, now)
        if delay is None:
            self._delays.pop(record.name, None)
        else:
            self._delays[record.name] = delay

    def heard(self, report: PlanReport, now: datetime) -> None:
        """What its plan says is under way."""
        before, self._report = (
            self._report,
            RecoveryReport(revision=report.revision, incomplete=report.incomplete),
        )
        for recovery in self._book.recoveries:
            if before.open(recovery) and not self._report.open(recovery):
                self._plans.end_run(RECOVERY, recovery.revision, _text(recovery), now)

    def forget_task(self, name: str) -> None:
        """Its back-off starts over: somebody restarts it, or it is no more."""
        self._delays.pop(name, None)

    def afresh(self, instance: str) -> None:
        """What is under way for a pod begins anew: somebody restarts or replaces it."""
        for recovery in self._book.recoveries:
            if f"{recovery.pod}-{recovery.index}" == instance:
                self._book = self._book.afresh(recovery.pod, recovery.index)

    def begins(self, lease: Lease) -> None:
        """A step of its plan gets a pod to work on. A pod that was down for too long leaves its
        place now (reference 6.4): before, it might have come back there by itself."""
        for one in self._book.recoveries:
            if (
                one.permanent
                and one.instance == (lease.pod, lease.index)
                and self._report.open(one)
                and not has_launched(one, self._tasks.records)
            ):
                self._tasks.give_up(lease.pod, lease.index)

    def lost(self) -> None:
        """The plan is gone, and begins with nothing."""
        self._book = self._book.emptied()
        self._report = RecoveryReport(revision=self._book.revision)

    # --- what is done about it ---

    def tend(
        self,
        specs: Mapping[str, PlanSpec],
        leases: LeaseState,
        policy: RecoveryPolicy,
        now: datetime,
    ) -> PlanRevision | None:
        """What to tell the plan now, if anything. ``specs`` are the service's plans."""
        records = self._tasks.records
        self._down = down_times(records, self._down, now)
        launchable = launchable_tasks(specs.values(), records)
        facts: dict[str, Any] = {
            "launchable": launchable,
            "overrides": self._tasks.overrides,
            "delays": self._delays,
            "policy": policy,
            "down_since": self._down,
            "now": now,
        }
        self._due = next_change(records, self._configs.specs, **facts)
        unwanted = {name for name in records if name not in launchable} | {
            name
            for name, override in self._tasks.overrides.items()
            if override is GoalOverride.DECOMMISSIONED
        }
        decision = decide(
            self._book,
            failed_pods(
                records,
                self._configs.specs,
                promised=self._book.promised(self._report),
                **facts,
            ),
            self._report,
            RecoverySituation(
                service=self._configs.target.spec, records=dict(records), plans=dict(specs)
            ),
            busy=leased_to_others(leases, priority=PRIORITY[RECOVERY]),
            policy=policy,
            now=now,
            unwanted=unwanted,
            recoverers=self._registry.recoverers,
            check=partial(
                problems,
                strategies=self._registry.strategy_names,
                step_kinds=frozenset(self._registry.kinds),
            ),
        )
        return self._revision(decision, now)

    def _revision(self, decision: RecoveryDecision, now: datetime) -> PlanRevision | None:
        for text in decision.problems:
            self._problem("recovery", text)
        known = {(one.instance, one.revision) for one in self._book.recoveries}
        kept = {(one.instance, one.revision) for one in decision.book.recoveries}
        for one in self._book.recoveries:
            if (one.instance, one.revision) not in kept and self._report.open(one):
                self._plans.end_run(RECOVERY, one.revision, _text(one), now, superseded=True)
        self._book = decision.book
        for one in self._book.recoveries:
            if (one.instance, one.revision) not in known:
                self._plans.remember(
                    RunRecord(
                        plan=RECOVERY,
                        run=one.revision,
                        started=now,
                        status=Status.IN_PROGRESS,
                        what=_text(one),
                    )
                )
        if not decision.revises:
            return None
        return PlanRevision(
            number=self._book.revision,
            put=tuple(PhasePut(spec=one.spec, state=one.state) for one in decision.put),
            drop=decision.drop,
        )


def _text(recovery: Recovery) -> str:
    how = "replaces" if recovery.permanent else "relaunches"
    return f"{how} {recovery.pod}-{recovery.index}:[{', '.join(recovery.tasks)}]"
