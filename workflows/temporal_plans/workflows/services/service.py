"""The Service workflow: configurations, task records and leases of a service.

It runs until it is uninstalled. What all owners of plans share is in ``workflows.owners.owner``,
the message handlers are in the base classes, and the state is ``ServiceState``. This module does
the work that is due after a change.
"""

from collections.abc import Mapping
from datetime import datetime

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.plans.commands import Command
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.configuration import Configuration, specs_of
from temporal_plans.domain.services.plan_names import DECOMMISSION, DEPLOY, PRIORITIES, RECOVERY
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.recovery.book import RecoveryReport
from temporal_plans.domain.services.recovery.keeper import (
    RecoveryKeeper,
    RecoveryRules,
    RecoveryWorld,
)
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.owners import (
    OwnerResult,
    OwnerState,
    PlanBegin,
    PlanRecord,
    UninstallRequest,
)
from temporal_plans.messages.plans import PhasePut, PlanInput, PlanReport, PlanRevision
from temporal_plans.messages.services import (
    PodCommand,
    PodCommandMessage,
    PodCommandResult,
    ServiceInput,
    ServiceState,
)
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.plans.registry import Registry, registry
from temporal_plans.workflows.services.changes import ServiceChanges
from temporal_plans.workflows.services.configurations import new_configuration
from temporal_plans.workflows.services.deploying import Deploying
from temporal_plans.workflows.services.deployments import ServiceDeployments
from temporal_plans.workflows.services.kills import Kills
from temporal_plans.workflows.services.leases import ServiceLeases
from temporal_plans.workflows.services.plan_inputs import PlanInputs
from temporal_plans.workflows.services.pod_verbs import PodVerbs
from temporal_plans.workflows.services.pods import PodCommands
from temporal_plans.workflows.services.queries import ServiceQueries
from temporal_plans.workflows.services.removal import Removal
from temporal_plans.workflows.services.rules import ServiceRules, service_rules
from temporal_plans.workflows.services.task_messages import TaskMessages


@workflow.defn(name="Service")
class Service(Deploying, ServiceLeases, TaskMessages, Removal, PodVerbs, ServiceQueries):
    """The entity ``service/<name>``. Ends when it has been uninstalled."""

    kind = "service"
    removal_plan = DEPLOY
    commands = ("uninstall", *PodVerb)

    @workflow.init
    def __init__(self, input: ServiceInput) -> None:
        state = input.state or ServiceState()
        known, rules = registry(), service_rules()
        self._name = input.spec.name
        self._configs = ConfigurationBook[Configuration](state.configs, state.target)
        self._installs = not self._configs.has_target
        if self._installs:
            self._configs.accept(new_configuration(self._configs, input))
        self._tasks = TaskBook(
            state.tasks,
            state.reservations,
            state.overrides,
            state.lost_agents,
            state.replaced,
            state.strangers,
        )
        self.init_owner(state.owner, priorities=PRIORITIES, standing=(RECOVERY,))
        self._kills = Kills(state.pending_kills, self._record_kill)
        self._pods = PodCommands(self._tasks, self._kills)
        self._changes = ServiceChanges(
            self._name, self._configs, self._tasks, known, rules, self.record_problem
        )
        self._recovery = RecoveryKeeper(
            state.recovery,
            tasks=self._tasks,
            runs=self.plans.runs,
            rules=_recovery_rules(known, rules),
        )
        self._deployments = ServiceDeployments(
            input.but(state=None),
            state,
            reported=not self._installs,
            configs=self._configs,
            changes=self._changes,
            plans=self.plans,
            tasks=self._tasks,
            recovery=self._recovery,
            kills=self._kills,
            outbox=self.outbox,
        )
        self._plan_inputs = PlanInputs(
            self._configs, self._changes, self._deployments, self.record_problem
        )
        self._leases = state.leases
        self._refused: tuple[Reason, ...] = ()
        # Messages are handled before ``run``; in a new service they wait for the installation.
        if not self._installs:
            self._deployments.resume()

    @workflow.run
    async def run(self, input: ServiceInput) -> OwnerResult:
        require_plugin()
        if self._installs:
            await self._install()
        self._kills.resume()
        await self.run_until_uninstalled()
        return OwnerResult(name=self._spec.name, log=self.log.log, runs=self.plans.runs.history)

    async def _install(self) -> None:
        """Deploy the first configuration. Raises ApplicationError when it can't be deployed."""
        self._refused = await self._deployments.install()
        if self._refused:
            await workflow.wait_condition(workflow.all_handlers_finished)
            text = "this service can't be deployed:\n" + "\n".join(map(str, self._refused))
            refusal = Refusal(code=Code.CONFIGURATION, reasons=self._refused)
            raise refusal_error(refusal, text=text, type="InvalidService")

    # --- hooks: values ---

    @property
    def owner_name(self) -> str:
        return self._name

    @property
    def startable(self) -> Mapping[str, PlanSpec]:
        return self._deployments.specs

    @property
    def history_limit(self) -> int:
        return self._deployments.input.history_limit

    @property
    def configuration_number(self) -> int:
        return self._configs.target.number

    @property
    def nothing_under_way(self) -> bool:
        return not self._kills.pending

    @property
    def _spec(self) -> ServiceSpec:
        return self._configs.target.spec

    def plan_input(self, begin: PlanBegin, record: PlanRecord) -> PlanInput:
        return self._plan_inputs.make(begin, record, uninstalling=self.uninstalling)

    def next_input(self, state: OwnerState) -> ServiceInput:
        carried = ServiceState(
            owner=state,
            configs=self._configs.all,
            target=self._configs.target.id,
            tasks=self._tasks.records,
            reservations=self._tasks.reservations,
            overrides=self._tasks.overrides,
            lost_agents=self._tasks.lost_agents,
            replaced=tuple(self._tasks.replaced),
            strangers=self._tasks.strangers,
            leases=self._leases,
            recovery=self._recovery.state,
            deployed_once=self._deployments.done_once,
            updates=self._deployments.updates,
            rejected=self._deployments.rejected,
            pending_kills=self._kills.pending,
        )
        return self._deployments.input.but(state=carried)

    # --- hooks: events ---

    def advance(self, now: datetime) -> None:
        self._expire_unreported_launches(now)
        if self.uninstalling:
            self.ensure_running(DEPLOY, "the uninstall is retried")
        else:
            self._advance_recovery(now)
            if self._finished:
                goal = UninstallRequest(reason="its goal FINISH is reached")
                self.begin_uninstall(goal, via="goal")

    def _expire_unreported_launches(self, now: datetime) -> None:
        lost, due = self._tasks.expired_launches(self._leases, now)
        if lost:
            self._record_statuses(lost)
        if due is not None:
            self.alarm.at(due)

    def _advance_recovery(self, now: datetime) -> None:
        if not self.plans.is_open(RECOVERY):
            if self.ensure_running(RECOVERY, "always runs"):
                self._recovery.lost()
            return
        world = RecoveryWorld(
            target=self._spec,
            specs=specs_of(self._configs),
            plans=self._deployments.specs,
            leases=self._leases,
            policy=self._deployments.input.recovery,
        )
        decision = self._recovery.tend(world, now)
        for reason in decision.problems:
            self.record_problem(RECOVERY, str(reason), reason.trace)
        if decision.revises:
            put = tuple(PhasePut(spec=phase.spec, state=phase.state) for phase in decision.put)
            revision = PlanRevision(number=self._recovery.revision, put=put, drop=decision.drop)
            self.outbox.put(self.plans.workflow_id(RECOVERY), "revise", revision)
        if (due := self._recovery.due) is not None:
            self.alarm.at(due)

    def may_begin(self, plan: str) -> bool:
        if self.uninstalling:
            return plan == DEPLOY and not any(
                self.plans.is_open(other) for other in self.plans.records if other != DEPLOY
            )
        # The unfinished work of the former deployment is known once the new one has started.
        return plan != DECOMMISSION or self.plans.settled(DEPLOY)

    @property
    def _finished(self) -> bool:
        """Whether the goal is FINISH and is reached: the service is uninstalled (behaviour 4.3)."""
        return (
            self._spec.goal is Goal.FINISH
            and self._deployments.done_once
            and self.plans.settled(DEPLOY)
            and not self.plans.is_open(DEPLOY)
            and self.plans.records[DEPLOY].status is Status.COMPLETE
            and self._recovery.idle
        )

    def reported(self, report: PlanReport) -> None:
        if report.plan == RECOVERY and self.plans.is_newest(report):
            progress = RecoveryReport(revision=report.revision, incomplete=report.incomplete)
            self._recovery.reported(progress, workflow.now())

    def plan_ended(self, report: PlanReport) -> None:
        if report.plan != DEPLOY:
            return
        pending = self.plans.pending.get(DEPLOY)
        if report.superseded and pending is not None and not self.uninstalling:
            self._deployments.superseded(report)
        if report.status is not Status.COMPLETE or report.superseded:
            return
        if self.uninstalling:
            self.over = pending is None
        else:
            self._deployments.complete()

    # --- pods ---

    def check_pod(self, verb: PodVerb, command: PodCommand) -> None:
        self.refuse_when_uninstalling()
        self._pods.check(verb, command, self._spec)

    async def pod_signal(self, verb: PodVerb, command: PodCommandMessage) -> None:
        if command.malformed:
            self.record_problem(verb, command.malformed)
        else:
            await self.pod_command(verb, command, "signal")

    async def pod_command(self, verb: PodVerb, command: PodCommand, via: str) -> PodCommandResult:
        await workflow.wait_condition(lambda: self.begun)
        self.check_pod(verb, command)
        result = self._pods.carry_out(verb, command, self._spec)
        if verb in (PodVerb.RESTART, PodVerb.REPLACE):
            for name in result.tasks:
                self._recovery.forget_task(name)
            self._recovery.restart(command.pod)
        entry = Command(by=command.by, reason=command.reason)
        self.log.command(
            f"{verb} {command.pod}", entry, result.outcome, via=via, now=workflow.now()
        )
        self.changed()
        return result


def _recovery_rules(known: Registry, rules: ServiceRules) -> RecoveryRules:
    return RecoveryRules(
        recoverers=rules.recoverers,
        strategies=known.strategy_names,
        step_kinds=frozenset(known.kinds),
    )
