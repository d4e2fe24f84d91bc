"""The Service workflow: what a service is to be, what became of its tasks, and who works on them.

It lives for ever and owns no child workflow (DESIGN 4): it starts plans through an activity, and
they report to its fixed id. What it keeps is in ``ServiceState``; what it has yet to tell others is
in its outbox.
"""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from temporal_plans.domain import leases
from temporal_plans.domain.board import PlanBoard
from temporal_plans.domain.commands import (
    Command,
    CommandRefused,
    Outcome,
    Verb,
    find_element,
    suggest,
)
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.generation import generate
from temporal_plans.domain.leases import Settlement
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import (
    AgentLostMessage,
    ConfigQuery,
    Holdings,
    KillInput,
    LaunchIntent,
    LaunchOrder,
    TaskRef,
    TaskStatuses,
    agent_queue,
)
from temporal_plans.messages.plan import CommandLog, FirstCommand, PlanInput, ServiceContext
from temporal_plans.messages.service import (
    ClosedPlans,
    DeployResult,
    LeaseGrant,
    LeaseRequest,
    OpenPlans,
    PlanRecord,
    PlanReport,
    PlanStart,
    Pods,
    ServiceInput,
    ServiceState,
    ServiceStatus,
    StartPlan,
    SubscribeMessage,
    Tasks,
)
from temporal_plans.workflows.handlers import should_continue_as_new, wait_or_timeout
from temporal_plans.workflows.log import CommandLogger
from temporal_plans.workflows.outbox import Outbox
from temporal_plans.workflows.service_tasks import ServiceTasks

DEPLOY = "deploy"
LOOK_AFTER = timedelta(seconds=60)
"""How often plans that are thought to run are looked for: one that was terminated says nothing."""

LAST_WORDS = timedelta(seconds=5)
"""How long a run that is to end waits to be rid of what it has to tell; the next one goes on."""


@workflow.defn(name="Service")
class Service:
    """Entity ``service/<name>``."""

    @workflow.init
    def __init__(self, input: ServiceInput) -> None:
        self._id = workflow.info().workflow_id
        self._input = input
        self._state = input.state or ServiceState()
        self._tasks = ServiceTasks(self._state)
        self._plans = dict(self._state.plans)
        self._configs = dict(self._state.configs)
        self._target = self._state.target or str(workflow.uuid4())
        self._configs.setdefault(self._target, input.spec)
        self._leases = self._state.leases
        self._deployed_once = self._state.deployed_once
        self._log = CommandLogger(self._state.log)
        self._outbox = Outbox(self._state.unsent)
        self._zombies = {task.task_id: task for task in self._state.zombies}
        self._starting: dict[str, PlanInput] = {}
        # Messages are handled before ``run``. A spec that gives no plans has no state either.
        self._specs = self._generated() if input.state is not None else {}

    @workflow.run
    async def run(self, input: ServiceInput) -> None:
        self._specs = self._specs or self._generated()
        self._start_new_plans()
        self._take_up()
        while True:
            await self._start_plans()
            await self._wait()
            if self._should_roll():
                await self._roll()

    def _take_up(self) -> None:
        """Go on with what the run before left undone."""
        self._outbox.resume()
        for task in self._state.zombies:
            asyncio.create_task(self._killed(task))  # noqa: RUF006  # in _zombies

    async def _roll(self) -> None:
        """Continue as new, unless a command came in between. Nothing may hold that up for long:
        statuses may come without a pause, and a task be killed on an agent that is dead."""
        await workflow.wait_condition(workflow.all_handlers_finished)
        if not self._all_told():
            await wait_or_timeout(self._all_told, LAST_WORDS)
        if workflow.all_handlers_finished() and not self._starting:
            workflow.continue_as_new(self._carried())

    def _all_told(self) -> bool:
        return self._outbox.empty and not self._zombies

    def _generated(self) -> dict[str, PlanSpec]:
        """The plans of the target configuration; a spec that gives none fails the workflow."""
        try:
            plans = self._input.plans or generate(self._spec, completed_before=self._deployed_once)
        except SpecError as error:
            raise ApplicationError(str(error), type="InvalidService", non_retryable=True) from None
        return {plan.name: plan for plan in plans}

    @property
    def _spec(self) -> ServiceSpec:
        return self._configs[self._target]

    def _should_roll(self) -> bool:
        return should_continue_as_new(self._input.history_limit)

    async def _wait(self) -> None:
        """Until there is something to do; open plans are looked after now and then."""
        watching = any(plan.open for plan in self._plans.values())
        try:
            await workflow.wait_condition(
                lambda: bool(self._starting) or self._should_roll(),
                timeout=LOOK_AFTER if watching else None,
                timeout_summary="look after open plans",
            )
        except TimeoutError:
            await self._look_after_plans()

    def _carried(self) -> ServiceInput:
        """The next run's input. This run sends nothing from here on."""
        return self._input.but(
            state=ServiceState(
                configs=self._configs,
                target=self._target,
                tasks=self._tasks.records,
                reservations=self._tasks.reservations,
                plans=self._plans,
                leases=self._leases,
                deployed_once=self._deployed_once,
                log=self._log.log,
                unsent=self._outbox.close(),
                zombies=tuple(self._zombies.values()),
            )
        )

    # --- plans ---

    def _start_new_plans(self) -> None:
        """The deploy plan runs; every other plan waits to be started (reference 5.5)."""
        for priority, name in enumerate(self._specs):
            if name not in self._plans:
                self._plans[name] = PlanRecord(
                    name=name,
                    workflow_id=f"{self._spec.name.strip('/')}/{name}",
                    priority=priority if name == DEPLOY else priority + 10,
                )
                self._begin(name, interrupted=name != DEPLOY)

    def _begin(
        self, name: str, *, interrupted: bool = False, first: FirstCommand | None = None
    ) -> None:
        record = self._plans[name]
        self._plans[name] = record.but(
            run=record.run + 1, open=True, status=Status.PENDING, changed=workflow.now()
        )
        spec = self._specs[name]
        self._starting[name] = PlanInput.model_construct(
            **{field: getattr(spec, field) for field in type(spec).model_fields},
            arguments=first.command.parameters if first else {},
            interrupted=interrupted,
            first=(first,) if first else (),
            backoff=self._input.backoff,
            context=ServiceContext(
                service=self._spec.name,
                workflow_id=self._id,
                config_id=self._target,
                plan=name,
                pool=self._input.pool,
                priority=record.priority,
            ),
        )

    async def _start_plans(self) -> None:
        for name in list(self._starting):
            record, input = self._plans[name], self._starting[name]
            await workflow.execute_activity(
                "start_plan",
                PlanStart(workflow_id=record.workflow_id, run=record.run, input=input),
                start_to_close_timeout=timedelta(seconds=30),
                summary=f"start {name}",
            )
            if self._starting[name] is input:  # it may be over, and started again, by now
                del self._starting[name]

    async def _look_after_plans(self) -> None:
        """A plan that was terminated can't report: its leases go back, its record is closed."""
        open_plans = {p.workflow_id: p for p in self._plans.values() if p.open}
        answer = await workflow.execute_activity(
            "closed_plans",
            OpenPlans(workflow_ids=tuple(open_plans)),
            result_type=ClosedPlans,
            start_to_close_timeout=timedelta(minutes=1),
            summary="which plans are over",
        )
        for workflow_id in answer.workflow_ids:
            plan = self._plans[open_plans[workflow_id].name]
            if plan.open and plan.run == open_plans[workflow_id].run:
                self._close(plan)

    def _close(self, plan: PlanRecord) -> None:
        self._plans[plan.name] = plan.but(open=False, changed=workflow.now())
        self._settle(leases.drop_plan(self._leases, plan.name))

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        plan = self._plans.get(report.plan)
        if plan is None:
            return
        self._plans[report.plan] = plan.but(
            status=report.status, open=report.open, changed=workflow.now()
        )
        if not report.open:
            self._close(self._plans[report.plan])
        if report.plan == DEPLOY and report.status is Status.COMPLETE:
            self._deployed_once = True

    @workflow.update(
        name="start_plan",
        description="Run a plan that has ended again. Input {plan, verb, phase, step, parameters}.",
    )
    async def start_plan(self, start: StartPlan) -> Outcome:
        outcome = self._start_again(start)
        verb = f"{start.verb} {start.plan}"
        self._log.command(verb, start, outcome, via="update", now=workflow.now())
        await workflow.wait_condition(lambda: start.plan not in self._starting)
        return outcome

    def _start_again(self, start: StartPlan) -> Outcome:
        if self._plans[start.plan].open:
            text = f"plan {start.plan} is running; give it the command itself"
            return Outcome(code=208, message=text, changed=False)
        command = Command(**{name: getattr(start, name) for name in Command.model_fields})
        self._begin(start.plan, first=FirstCommand(verb=start.verb, command=command))
        return Outcome(
            code=200, message=f"Received cmd: {start.verb} {start.plan}, which had ended"
        )

    @start_plan.validator
    def _check_start_plan(self, start: StartPlan) -> None:
        if start.plan not in self._plans:
            names = list(self._plans)
            raise ApplicationError(
                f"Plan {start.plan} not found{suggest(start.plan, names)}", type="PlanNotFound"
            )
        spec = self._specs[start.plan]
        try:
            find_element(PlanBoard(spec), "", start.phase, start.step)
        except CommandRefused as refusal:
            raise ApplicationError(str(refusal), type="CommandRefused") from None
        if start.verb is Verb.RESTART:
            return
        _, problems = check_arguments(spec.parameters, start.parameters)
        if problems:
            raise ApplicationError(
                "; ".join(str(problem) for problem in problems), type="CommandRefused"
            )

    @workflow.update(
        name="deploy", description="Deploy a configuration. Input: what the Service starts with."
    )
    async def deploy(self, input: ServiceInput) -> DeployResult:
        installs = not self._plans  # it came with the start, and is handled before ``run``
        await workflow.wait_condition(lambda: bool(self._plans) and DEPLOY not in self._starting)
        plan = self._plans[DEPLOY].workflow_id if DEPLOY in self._plans else ""
        message = f"plan {plan} is under way" if installs else "nothing changed"
        return DeployResult(
            config_id=self._target,
            plan=plan,
            outcome=Outcome(code=200, message=message, changed=installs),
        )

    @deploy.validator
    def _check_deploy(self, input: ServiceInput) -> None:
        if input.spec != self._spec:
            raise ApplicationError(
                f"service {self._spec.name} is installed with another configuration;"
                " changing the configuration of a service is not possible in this version",
                type="ConfigurationChange",
            )

    # --- assets ---

    @workflow.signal(name="leases", description="From a phase: assets wanted and given back.")
    def on_leases(self, request: LeaseRequest) -> None:
        for lease in self._leases.held:
            if lease.phase == request.phase and (request.ended or lease.step in request.returns):
                self._tasks.forget_owner(lease)
        settlement = leases.request(
            self._leases, request.wants, request.returns, request.phase, request.ended
        )
        self._settle(settlement)

    def _settle(self, settlement: Settlement) -> None:
        """Keep the book's new state, and tell every phase what it was given or waits for."""
        self._leases = settlement.state
        granted: dict[str, dict[int, int]] = {}
        held: dict[str, dict[int, str]] = {}
        for lease in settlement.grants:
            granted.setdefault(lease.phase, {})[lease.step] = lease.ticket
        for (phase, step), holder in settlement.held.items():
            held.setdefault(phase, {})[step] = holder
        for phase in sorted({*granted, *held}):
            grant = LeaseGrant(granted=granted.get(phase, {}), held=held.get(phase, {}))
            self._outbox.put(phase, "leased", grant)

    # --- tasks ---

    @workflow.update(name="record_launch", description="Before a launch: what will be started.")
    async def record_launch(self, intent: LaunchIntent) -> LaunchOrder:
        pod = self._configs[intent.config_id or self._target].pod(intent.pod)
        return self._tasks.intend(intent, pod, workflow.now())

    @record_launch.validator
    def _check_record_launch(self, intent: LaunchIntent) -> None:
        config = self._configs.get(intent.config_id or self._target)
        if config is None or intent.pod not in {pod.type for pod in config.pods}:
            raise ApplicationError(
                f"no pod {intent.pod} in configuration {intent.config_id}",
                type="UnknownPod",
                non_retryable=True,
            )

    @workflow.signal(name="task_statuses", description="From agents: what became of tasks.")
    def on_task_statuses(self, statuses: TaskStatuses) -> None:
        self._take(statuses.statuses)

    def _take(self, statuses: tuple[TaskStatus, ...]) -> None:
        forward: dict[str, list[TaskStatus]] = {}
        for status in statuses:
            news = self._tasks.take(status)
            if news.zombie is not None:
                self._kill(news.zombie)
            elif news.owner and not status.told:
                forward.setdefault(news.owner, []).append(status)
        for owner, group in forward.items():
            self._outbox.put(owner, "task_statuses", TaskStatuses(statuses=tuple(group)))

    def _kill(self, task: TaskRef) -> None:
        """A task that is not the newest of its name must not run (reference 4.4). It is killed
        once, however often it is reported meanwhile."""
        if task.task_id not in self._zombies:
            self._zombies[task.task_id] = task
            asyncio.create_task(self._killed(task))  # noqa: RUF006  # in _zombies

    async def _killed(self, task: TaskRef) -> None:
        try:
            await workflow.execute_activity(
                "kill",
                KillInput(task_ids=(task.task_id,), reason="not the newest launch of its task"),
                result_type=TaskStatuses,
                task_queue=agent_queue(task.agent),
                schedule_to_close_timeout=timedelta(minutes=10),
                heartbeat_timeout=timedelta(seconds=10),
                start_to_close_timeout=timedelta(minutes=10),
                summary=f"kill {task.task_id}",
            )
        except FailureError as error:
            workflow.logger.warning("task %s was not killed: %s", task.task_id, error)
        del self._zombies[task.task_id]

    @workflow.signal(name="subscribe", description="From a step: tell me about these tasks.")
    def on_subscribe(self, message: SubscribeMessage) -> None:
        known = self._tasks.follow(message.owner, message.task_ids, workflow.now())
        if known:
            self._outbox.put(message.owner, "task_statuses", TaskStatuses(statuses=known))

    @workflow.signal(name="agent_lost", description="From the pool: an agent was given up.")
    def on_agent_lost(self, message: AgentLostMessage) -> None:
        self._take(self._tasks.lost_with(message.agent, workflow.now()))

    @workflow.signal(name="offered", description="From the pool; a service itself waits for none.")
    def on_offered(self, _: object = None) -> None: ...

    def record_problem(self, name: str, text: str) -> None:
        """Keep a message that was not understood in the log (the guard calls this)."""
        self._log.problem(name, text, now=workflow.now())

    # --- what is read ---

    @workflow.query(name="status", description="Plans, configurations and numbers of tasks.")
    def status(self) -> ServiceStatus:
        records = self._tasks.records.values()
        return ServiceStatus(
            name=self._spec.name,
            config_id=self._target,
            pool=self._input.pool,
            configs=tuple(self._configs),
            plans=tuple(self._plans.values()),
            tasks=len(records),
            running=sum(
                r.status is not None and r.status.state is TaskState.RUNNING for r in records
            ),
            leases=self._leases.held,
        )

    @workflow.query(name="config", description="A configuration. Input {config_id}, optional.")
    def config(self, query: ConfigQuery = ConfigQuery()) -> ServiceSpec:
        if query.config_id and query.config_id not in self._configs:
            names = ", ".join(self._configs)
            raise ApplicationError(f"no configuration {query.config_id}; there are: {names}")
        return self._configs[query.config_id or self._target]

    @workflow.query(name="tasks", description="The newest launch of every task.")
    def tasks(self) -> Tasks:
        return Tasks(tasks=tuple(self._tasks.records.values()))

    @workflow.query(name="pods", description="Pod instances with their tasks and reservations.")
    def pods(self) -> Pods:
        return Pods(pods=self._tasks.pods(self._spec))

    @workflow.query(name="holdings", description="The keys of the reservations that it keeps.")
    def holdings(self) -> Holdings:
        return Holdings(keys=tuple(self._tasks.reservations))

    @workflow.query(name="log", description="Commands to the service itself, and their outcome.")
    def log(self) -> CommandLog:
        return self._log.log
