"""The Service workflow: what a service is to be, what became of its tasks, and who works on them.

It lives until it is uninstalled and owns no child workflow (DESIGN 4): it starts plans through an
activity, and they report to its fixed id. What it keeps is in ``ServiceState``; what it has yet to
tell others is in its outbox. This module takes the messages and says when what is done; how is in
the modules ``service_*``.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain import leases
from temporal_plans.domain.commands import (
    Command,
    CommandRefused,
    Outcome,
    Verb,
    find_element,
    suggest,
)
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.leases import Lease, Settlement
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.pod_verb import PodVerb
from temporal_plans.domain.recovery import Launchable
from temporal_plans.domain.service import Goal, ServiceSpec, task_instance_name
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskStatus
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.cluster import (
    AGENT_LOST,
    AgentLostMessage,
    LaunchIntent,
    LaunchOrder,
    TaskStatuses,
)
from temporal_plans.messages.packed_state import packed, unpacked
from temporal_plans.messages.plan import (
    FirstCommand,
    PlanInput,
)
from temporal_plans.messages.service import (
    ChangeView,
    DeployResult,
    EraseTask,
    LeaseGrant,
    LeaseRequest,
    PlanBegin,
    PlanRecord,
    PlanReport,
    PodCommand,
    PodCommandResult,
    Released,
    Retired,
    RetireTask,
    Rollback,
    ServiceInput,
    ServiceResult,
    ServiceState,
    StartPlan,
    SubscribeMessage,
    UninstallRequest,
)
from temporal_plans.workflows.alarm import Alarm
from temporal_plans.workflows.handlers import should_continue_as_new, wait_or_timeout
from temporal_plans.workflows.kills import Kills
from temporal_plans.workflows.log import CommandLogger
from temporal_plans.workflows.outbox import Outbox
from temporal_plans.workflows.pod_verbs import PodVerbs
from temporal_plans.workflows.refusal import refusal
from temporal_plans.workflows.registry import registry
from temporal_plans.workflows.service_changes import ServiceChanges
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_deployments import ANSWER_WITHIN, ServiceDeployments
from temporal_plans.workflows.service_plan_inputs import PlanInputs
from temporal_plans.workflows.service_plans import (
    DECOMMISSION,
    DEPLOY,
    RECOVERY,
    ServicePlans,
)
from temporal_plans.workflows.service_pods import PodCommands
from temporal_plans.workflows.service_queries import ServiceQueries
from temporal_plans.workflows.service_recovery import ServiceRecovery
from temporal_plans.workflows.service_tasks import ServiceTasks

LAST_WORDS = timedelta(seconds=5)
"""How long a run that is to end waits to be rid of what it has to tell; the next one goes on."""

ANYBODY = UninstallRequest()

BEGUN_AGAIN_AFTER = timedelta(seconds=10)
"""The pause before a plan begins anew that the service can't be without."""

RETIRED_WITHIN = timedelta(seconds=20)
"""How long an asker is kept waiting for the death of a task before it is told to ask again."""


@workflow.defn(name="Service")
class Service(PodVerbs, ServiceQueries):
    """Entity ``service/<name>``. Ends when it has been uninstalled."""

    @workflow.init
    def __init__(self, input: ServiceInput) -> None:
        state, self._fault = _state_of(input)
        self._registry = registry()
        self._configs = ServiceConfigs(state.configs, state.target)
        self._installs = not self._configs.has_target
        if self._installs:
            self._configs.accept(self._configs.make(input))
        self._tasks = ServiceTasks(state)
        self._outbox = Outbox(state.unsent, self._sent)
        self._kills = Kills(state.doomed, self._killed)
        self._pods = PodCommands(self._tasks, self._kills)
        self._changes = ServiceChanges(
            input.spec.name, self._configs, self._tasks, self._registry, self.record_problem
        )
        self._plans = ServicePlans(
            state,
            service=input.spec.name,
            outbox=self._outbox,
            make=self._make,
            changed=self._changed,
        )
        self._recovery = ServiceRecovery(
            state.recovery,
            tasks=self._tasks,
            configs=self._configs,
            plans=self._plans,
            registry=self._registry,
            problem=self.record_problem,
        )
        self._deployments = ServiceDeployments(
            input.but(state=None, packed=""),
            state,
            announced=not self._installs,
            configs=self._configs,
            changes=self._changes,
            plans=self._plans,
            tasks=self._tasks,
            recovery=self._recovery,
            kills=self._kills,
            outbox=self._outbox,
        )
        self._plan_inputs = PlanInputs(
            self._configs, self._changes, self._deployments, self.record_problem
        )
        self._alarm = Alarm(self._changed)
        self._leases = state.leases
        self._uninstalling = state.uninstalling
        self._log = CommandLogger(state.log)
        self._refused: tuple[Problem, ...] = ()
        self._begun = self._dirty = self._over = False
        self._looking = False
        self._looked = workflow.now()
        # Messages are handled before ``run``; of a new service they wait until it is installed.
        if not self._installs:
            self._deployments.resume()

    def _changed(self) -> None:
        self._dirty = True

    def _sent(self) -> None:
        """A plan begins only when nothing is on its way to the one before it."""
        if self._plans.pending:
            self._changed()

    # --- the run ---

    @workflow.run
    async def run(self, input: ServiceInput) -> ServiceResult:
        if self._fault:
            raise ApplicationError(self._fault, type="InvalidService", non_retryable=True)
        if self._installs:
            await self._install()
        self._outbox.resume()
        self._kills.resume()
        self._plans.resume()
        self._begun = True
        while not self._over:
            self._dirty = False
            self._tend()
            if self._may_roll():
                await self._roll()
            await workflow.wait_condition(lambda: self._dirty or self._over or self._may_roll())
        await self._last_words()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return ServiceResult(name=self._spec.name, log=self._log.log, runs=self._plans.history)

    async def _install(self) -> None:
        """Deploy the first configuration. Raises ApplicationError for one that can't be."""
        self._refused = await self._deployments.install()
        if self._refused:
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise ApplicationError(
                "this service can't be deployed:\n" + "\n".join(map(str, self._refused)),
                type="InvalidService",
                non_retryable=True,
            )

    def _tend(self) -> None:
        """Do all that can be done now."""
        now = workflow.now()
        self._tend_unheard(now)
        if self._uninstalling:
            self._begin_lost(DEPLOY, "uninstall, once more")
        else:
            self._tend_recovery(now)
            if self._finished:
                self._uninstall(UninstallRequest(reason="its goal FINISH is reached"), via="goal")
        self._plans.start_ready(self._may_begin, config=self._configs.target.number)
        every = self._plans.look_every
        if every is not None and not self._looking:
            if now >= self._looked + every:
                self._looking = True
                asyncio.create_task(self._look_after())  # noqa: RUF006  # _looking
            else:
                self._alarm.at(self._looked + every)

    def _tend_unheard(self, now: datetime) -> None:
        lost, due = self._tasks.never_heard_of(self._leases, now)
        if lost:
            self._take(lost)
        if due is not None:
            self._alarm.at(due)

    def _tend_recovery(self, now: datetime) -> None:
        if not self._plans.is_open(RECOVERY):
            if self._begin_lost(RECOVERY, "always runs"):
                self._recovery.lost()
            return
        revision = self._recovery.tend(
            self._deployments.specs, self._leases, self._input.recovery, now
        )
        if revision is not None:
            self._outbox.put(self._plans.workflow_id(RECOVERY), "revise", revision)
        if (due := self._recovery.due) is not None:
            self._alarm.at(due)

    def _begin_lost(self, name: str, what: str) -> bool:
        """Begin a plan that must not be missing; one that somebody ended again and again, not at
        once each time. Whether it does."""
        if self._over or self._plans.is_open(name) or not self._plans.settled(name):
            return False
        record = self._plans.records.get(name)
        if record is not None and record.changed is not None:
            due = record.changed + BEGUN_AGAIN_AFTER
            if workflow.now() < due:
                self._alarm.at(due)
                return False
        self._plans.begin(name, PlanBegin(what=what))
        return True

    def _may_begin(self, name: str) -> bool:
        """Whether nothing is in the way of a plan that is to begin."""
        if self._uninstalling:
            return name == DEPLOY and not any(
                self._plans.is_open(other) for other in self._plans.records if other != DEPLOY
            )
        # What the former deployment left in the middle is known once the new one has begun.
        return name != DECOMMISSION or self._plans.settled(DEPLOY)

    @property
    def _finished(self) -> bool:
        """A service with the goal FINISH goes when it is deployed (reference 4.3)."""
        return (
            self._spec.goal is Goal.FINISH
            and self._deployments.done_once
            and self._plans.settled(DEPLOY)
            and not self._plans.is_open(DEPLOY)
            and self._plans.records[DEPLOY].status is Status.COMPLETE
            and self._recovery.idle
        )

    def _look_soon(self) -> None:
        """Somebody has reason to think that a plan is over."""
        self._looked = workflow.now() - (self._plans.look_every or timedelta())
        self._changed()

    async def _look_after(self) -> None:
        """A plan that was terminated can't report: its leases go back, its record is closed."""
        for plan in await self._plans.look_after():
            self._tasks.forget_owners(plan.workflow_id)
            self._settle(leases.drop_plan(self._leases, plan.name))
        self._looked, self._looking = workflow.now(), False
        self._changed()

    # --- one run after the other ---

    def _may_roll(self) -> bool:
        """A handler that waits for what this loop has yet to do is let to its end first."""
        return (
            should_continue_as_new(self._input.history_limit)
            and not self._over
            and workflow.all_handlers_finished()
        )

    async def _roll(self) -> None:
        """Continue as new, unless a command came in between. Nothing may hold that up for long:
        statuses may come without a pause, and a task be killed on an agent that is dead."""
        await self._last_words()
        if self._may_roll():
            workflow.continue_as_new(self._carried())

    async def _last_words(self) -> None:
        if not self._all_told():
            await wait_or_timeout(self._all_told, LAST_WORDS)

    def _all_told(self) -> bool:
        return self._outbox.empty and not self._kills.doomed

    def _carried(self) -> ServiceInput:
        """The next run's input. This run sends nothing from here on."""
        state = ServiceState(
            configs=self._configs.all,
            target=self._configs.target.id,
            tasks=self._tasks.records,
            reservations=self._tasks.reservations,
            overrides=self._tasks.overrides,
            lost_agents=self._tasks.lost_agents,
            plans=self._plans.records,
            pending=self._plans.pending,
            starting=self._plans.starting,
            runs=self._plans.history,
            leases=self._leases,
            recovery=self._recovery.state,
            deployed_once=self._deployments.done_once,
            updates=self._deployments.updates,
            rejected=self._deployments.rejected,
            uninstalling=self._uninstalling,
            log=self._log.log,
            unsent=self._outbox.close(),
            doomed=self._kills.doomed,
        )
        if text := packed(state):
            return self._input.but(state=None, packed=text)
        return self._input.but(state=state, packed="")

    @property
    def _spec(self) -> ServiceSpec:
        return self._configs.target.spec

    @property
    def _input(self) -> ServiceInput:
        return self._deployments.input

    # --- plans ---

    def _make(self, begin: PlanBegin, record: PlanRecord) -> PlanInput:
        return self._plan_inputs.make(begin, record, uninstalling=self._uninstalling)

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        over = self._plans.take(report)
        if report.plan == RECOVERY and self._plans.is_newest(report):
            self._recovery.heard(report, workflow.now())
        if not report.open:  # what a former run holds, which somebody had reset, goes back as well
            self._tasks.forget_owners(report.workflow_id)
            self._settle(leases.drop_plan(self._leases, report.plan))
        if report.plan == DEPLOY and over:
            self._deploy_ended(report)
        self._changed()

    def _deploy_ended(self, report: PlanReport) -> None:
        pending = self._plans.pending.get(DEPLOY)
        if report.superseded and pending is not None and not self._uninstalling:
            self._deployments.overtaken(report)
        if report.status is not Status.COMPLETE or report.superseded:
            return
        if self._uninstalling:
            self._over = pending is None
        else:
            self._deployments.complete()

    @workflow.update(
        name="start_plan",
        description="Run a plan that has ended again. Input {plan, verb, phase, step, parameters}.",
    )
    async def start_plan(self, start: StartPlan) -> Outcome:
        await workflow.wait_condition(lambda: self._begun)
        outcome = self._start_again(start)
        verb = f"{start.verb} {start.plan}"
        self._log.command(verb, start, outcome, via="update", now=workflow.now())
        await wait_or_timeout(lambda: self._plans.settled(start.plan), ANSWER_WITHIN)
        return outcome

    def _start_again(self, start: StartPlan) -> Outcome:
        if self._uninstalling or start.plan not in self._deployments.specs:  # since it was checked
            text = f"plan {start.plan} is no longer there to be started"
            return Outcome(code=409, message=text, changed=False)
        if self._plans.is_open(start.plan) or not self._plans.settled(start.plan):
            self._look_soon()
            text = f"plan {start.plan} is running; give it the command itself"
            return Outcome(code=208, message=text, changed=False)
        command = Command(**{name: getattr(start, name) for name in Command.model_fields})
        where = " ".join(filter(None, (start.phase, start.step)))
        begin = PlanBegin(
            first=FirstCommand(verb=start.verb, command=command),
            by=start.by,
            reason=start.reason,
            what=f"{start.verb} {where}".strip(),
        )
        self._plans.begin(start.plan, begin)
        return Outcome(
            code=200, message=f"Received cmd: {start.verb} {start.plan}, which had ended"
        )

    @start_plan.validator
    def _check_start_plan(self, start: StartPlan) -> None:
        if start.plan not in self._plans.records:
            names = list(self._plans.records)
            raise refusal(404, f"Plan {start.plan} not found{suggest(start.plan, names)}")
        if self._uninstalling:
            raise refusal(409, f"service {self._spec.name} is being uninstalled")
        spec = self._deployments.specs.get(start.plan)
        if spec is None:
            raise refusal(409, f"plan {start.plan} begins by itself when there is work for it")
        try:
            find_element(spec.phases, "", start.phase, start.step)
        except CommandRefused as refused:
            raise ApplicationError(str(refused), type="CommandRefused") from None
        if start.verb is Verb.RESTART:
            return
        _, problems = check_arguments(spec.parameters, start.parameters)
        if problems:
            raise refusal(400, "; ".join(str(problem) for problem in problems))

    # --- configurations ---

    @workflow.update(
        name="deploy", description="Deploy a configuration. Input: what the Service starts with."
    )
    async def deploy(self, input: ServiceInput) -> DeployResult:
        await workflow.wait_condition(lambda: self._begun or bool(self._refused))
        if self._refused:
            return DeployResult(
                config_id="",
                plan="",
                outcome=Outcome(code=417, message="; ".join(map(str, self._refused))),
                change=ChangeView(problems=self._refused),
            )
        return await self._deploy(lambda: input)

    @deploy.validator
    def _check_deploy(self, input: ServiceInput) -> None:
        self._refuse_when_going()

    def _refuse_when_going(self) -> None:
        if self._uninstalling:
            raise refusal(
                409, f"service {self._spec.name} is being uninstalled; deploy it when it is gone"
            )

    async def _deploy(self, wanted: Callable[[], ServiceInput], source: str = "") -> DeployResult:
        input, result = await self._deployments.deploy(wanted, source, self._refuse_when_going)
        command = Command(by=input.by, reason=input.reason)
        verb = f"deploy {result.number}"
        self._log.command(verb, command, result.outcome, via="update", now=workflow.now())
        return result

    @workflow.update(
        name="rollback", description="Deploy an earlier configuration again. Input {config}."
    )
    async def rollback(self, request: Rollback) -> DeployResult:
        await workflow.wait_condition(lambda: self._begun)
        found = self._configs.find(request.config)
        return await self._deploy(
            lambda: self._input.but(
                spec=found.spec,
                plans=found.plans,
                rollout=request.rollout,
                by=request.by,
                reason=request.reason,
                state=None,
            ),
            source=found.id,
        )

    @rollback.validator
    def _check_rollback(self, request: Rollback) -> None:
        self._refuse_when_going()
        self._configs.find(request.config)

    # --- its end ---

    @workflow.update(name="uninstall", description="Take everything away, for good.")
    async def uninstall(self, request: UninstallRequest = ANYBODY) -> Outcome:
        await workflow.wait_condition(lambda: self._begun)
        outcome = self._uninstall(request, via="update")
        await wait_or_timeout(lambda: self._plans.settled(DEPLOY), ANSWER_WITHIN)
        return outcome

    @workflow.signal(name="uninstall", description="Take everything away, for good.")
    def on_uninstall(self, request: UninstallRequest = ANYBODY) -> None:
        self._uninstall(request, via="signal")

    def _uninstall(self, request: UninstallRequest, *, via: str) -> Outcome:
        text = f"service {self._spec.name} is being uninstalled"
        if self._uninstalling:
            outcome = Outcome(code=208, message=f"{text} already", changed=False)
        else:
            self._begin_uninstall(request)
            outcome = Outcome(code=200, message=text)
        command = Command(by=request.by, reason=request.reason)
        self._log.command("uninstall", command, outcome, via=via, now=workflow.now())
        return outcome

    def _begin_uninstall(self, request: UninstallRequest) -> None:
        self._uninstalling = True
        self._plans.pending.clear()
        for name in list(self._plans.records):
            if name != DEPLOY and self._plans.is_open(name):
                self._plans.supersede(name, "the service is uninstalled")
        self._plans.begin(DEPLOY, PlanBegin(by=request.by, reason=request.reason, what="uninstall"))

    @workflow.update(name="retire_task", description="From a step: kill it, for good.")
    async def retire_task(self, request: RetireTask) -> Retired:
        self._refuse_when_wanted(request.task)
        record = self._tasks.records.get(request.task)
        if record is None or (request.task_id and record.task_id != request.task_id):
            return Retired(dead=True)
        self._tasks.overrides[record.name] = GoalOverride.DECOMMISSIONED
        if record.live:
            self._kills.kill(record.ref, "taken away")
            await wait_or_timeout(lambda: self._dead(record), RETIRED_WITHIN)
        state = self._tasks.records.get(request.task, record).status
        said = f"task {record.task_id} on agent {record.agent} is {state.state if state else 'new'}"
        return Retired(dead=self._dead(record), agent=record.agent, reason=said)

    def _refuse_when_wanted(self, task: str) -> None:
        """A decommission that was called off may not have heard of it yet."""
        record = self._tasks.records.get(task)
        if record is None or self._uninstalling:
            return
        if not self._changes.is_going(record.pod, record.index):
            raise refusal(409, f"task {task} is not to be taken away any more")

    def _dead(self, record: TaskRecord) -> bool:
        now = self._tasks.records.get(record.name)
        return now is None or now.task_id != record.task_id or not now.live

    @workflow.update(name="erase_task", description="From a step: forget a task.")
    def erase_task(self, request: EraseTask) -> None:
        self._refuse_when_wanted(request.task)
        self._tasks.erase(request.task)
        self._recovery.forget_task(request.task)
        self._changed()

    @workflow.signal(name="released", description="From a step: the pool took this back.")
    def on_released(self, message: Released) -> None:
        held = self._tasks.reservations.get(message.key)
        if held is not None and message.reservation in ("", held.id):
            del self._tasks.reservations[message.key]

    # --- pods ---

    def check_pod(self, verb: PodVerb, command: PodCommand) -> None:
        self._refuse_when_going()
        self._pods.check(verb, command, self._spec)

    async def pod_command(self, verb: PodVerb, command: PodCommand, via: str) -> PodCommandResult:
        await workflow.wait_condition(lambda: self._begun)
        self.check_pod(verb, command)
        result = self._pods.carry_out(verb, command, self._spec)
        if verb in (PodVerb.RESTART, PodVerb.REPLACE):
            for name in result.tasks:
                self._recovery.forget_task(name)
            self._recovery.afresh(command.pod)
        said = Command(by=command.by, reason=command.reason)
        verb_text = f"{verb} {command.pod}"
        self._log.command(verb_text, said, result.outcome, via=via, now=workflow.now())
        self._changed()
        return result

    # --- assets ---

    @workflow.signal(name="leases", description="From a phase: assets wanted and given back.")
    def on_leases(self, request: LeaseRequest) -> None:
        for lease in self._leases.held:
            if lease.phase == request.phase and (request.ended or lease.step in request.returns):
                self._let_go(lease)
        settlement = leases.request(
            self._leases, request.wants, request.returns, request.phase, request.ended
        )
        self._settle(settlement)

    def _let_go(self, lease: Lease) -> None:
        """A task that has failed already was not seen by its step, which had what it wanted."""
        for record in self._tasks.forget_owner(lease):
            had_begun = record.goal == Goal.RUNNING and record.running_since is not None
            if had_begun and not record.live:
                self._recovery.ended(record, self._input.backoff, workflow.now())

    def _settle(self, settlement: Settlement) -> None:
        """Keep the book's new state, and tell every phase what it was given or waits for."""
        self._leases = settlement.state
        granted: dict[str, dict[int, int]] = {}
        held: dict[str, dict[int, str]] = {}
        for lease in settlement.grants:
            if lease.plan == RECOVERY:
                self._recovery.begins(lease)
            granted.setdefault(lease.phase, {})[lease.step] = lease.ticket
        for (phase, step), holder in settlement.held.items():
            held.setdefault(phase, {})[step] = holder
        for phase in sorted({*granted, *held}):
            grant = LeaseGrant(granted=granted.get(phase, {}), held=held.get(phase, {}))
            self._outbox.put(phase, "leased", grant)
        self._changed()

    # --- tasks ---

    @workflow.update(name="record_launch", description="Before a launch: what will be started.")
    async def record_launch(self, intent: LaunchIntent) -> LaunchOrder:
        pod = self._configs.get(intent.config_id).spec.pod(intent.pod)
        return self._tasks.intend(intent, pod, workflow.now())

    @record_launch.validator
    def _check_record_launch(self, intent: LaunchIntent) -> None:
        config = self._configs.get(intent.config_id)
        if intent.pod not in {pod.type for pod in config.spec.pods}:
            raise ApplicationError(
                f"no pod {intent.pod} in configuration {config.number}",
                type="UnknownPod",
                non_retryable=True,
            )
        for launch in intent.tasks:
            name = task_instance_name(intent.pod, intent.index, launch.task)
            if self._tasks.overrides.get(name) is GoalOverride.DECOMMISSIONED:
                raise refusal(409, f"task {name} is being taken away")
        if config.id != self._configs.target.id:
            self._refuse_when_dropped(intent)
        if self._recovery.called_off(intent.step):
            raise refusal(409, f"{intent.step} was called off: its pod needs it no longer")
        assets = [(intent.pod, intent.index, launch.task) for launch in intent.tasks]
        if holder := leases.other_holder(self._leases, intent.owner, assets):
            raise refusal(409, f"{intent.step} has lost its pod to {holder}")
        if self._tasks.lost_since(intent):
            text = f"agent {intent.reservation.agent} was given up since {intent.reserved}"
            held = self._tasks.reservation_of(intent.pod, intent.index)
            kept = held is not None and held.id == intent.reservation.id
            raise ApplicationError(text, kept, type=AGENT_LOST)
        if newer := self._tasks.overtaken(intent):
            raise ApplicationError(
                f"{intent.step} has launched {newer} since", type="Overtaken", non_retryable=True
            )

    def _refuse_when_dropped(self, intent: LaunchIntent) -> None:
        """The launch was being prepared when another configuration took effect, and what that takes
        away was looked for without it."""
        if self._changes.is_going(intent.pod, intent.index):
            raise refusal(409, f"pod {intent.pod}-{intent.index} is not wanted any more")
        wanted = Launchable(self._deployments.specs.values())
        for launch in intent.tasks:
            if not wanted.has(intent.pod, intent.index, launch.task):
                name = task_instance_name(intent.pod, intent.index, launch.task)
                raise refusal(409, f"task {name} is not wanted any more")

    @workflow.signal(name="task_statuses", description="From agents: what became of tasks.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        self._take(statuses.statuses)

    def _take(self, statuses: tuple[TaskStatus, ...]) -> None:
        forward: dict[str, list[TaskStatus]] = {}
        for status in statuses:
            news = self._tasks.take(status)
            if news.zombie is not None:
                self._kills.kill(news.zombie, "not the newest launch of its task")
            elif news.record is not None:
                if not news.record.live:
                    self._recovery.ended(news.record, self._input.backoff, workflow.now())
                if news.record.owner and not status.told:
                    forward.setdefault(news.record.owner, []).append(status)
        for owner, group in forward.items():
            self._outbox.put(owner, "task_statuses", TaskStatuses(statuses=tuple(group)))
        self._changed()

    def _killed(self, statuses: tuple[TaskStatus, ...]) -> None:
        """Agents report what becomes of their tasks. Of one that never came to an agent, because
        its launch was lost, there is nothing but the answer to the kill."""
        self._take(tuple(filter(self._tasks.unheard_of, statuses)))

    @workflow.signal(name="subscribe", description="From a step: tell me about these tasks.")
    def on_subscribe(self, message: SubscribeMessage) -> None:
        known = self._tasks.follow(message.owner, message.task_ids, workflow.now())
        if known:
            self._outbox.put(message.owner, "task_statuses", TaskStatuses(statuses=known))

    @workflow.signal(name="agent_lost", description="From the pool: an agent was given up.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        now = workflow.now()
        self._take(self._tasks.lost_with(message.agent, now, by_operator=message.by_operator))
        self._tasks.remember_lost(message.agent, message.at)
        if message.by_operator:
            self._kills.forget(message.agent)
            self._tasks.give_up_on(message.agent)

    @workflow.signal(name="offered", description="From the pool; a service itself waits for none.")
    def on_offered(self, _: object = None) -> None: ...

    def record_problem(self, name: str, text: str) -> None:
        """Keep a message that was not understood in the log (the guard calls this)."""
        self._log.problem(name, text, now=workflow.now())


def _state_of(input: ServiceInput) -> tuple[ServiceState, str]:
    """What the run before left, and what is wrong with that."""
    if not input.packed:
        return input.state or ServiceState(), ""
    try:
        return unpacked(input.packed), ""
    except ValueError as error:
        return ServiceState(), f"packed: {error}"
