"""What a service was told to be: the configurations that were asked for, and what came of each."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.change import summary
from temporal_plans.domain.commands import Outcome
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.transitions import shortened
from temporal_plans.messages.plan import PlanFaults
from temporal_plans.messages.service import (
    ChangeCheck,
    ChangeProblems,
    ChangeView,
    DeployResult,
    PlanBegin,
    PlanReport,
    ServiceInput,
    ServiceState,
)
from temporal_plans.workflows.handlers import wait_or_timeout
from temporal_plans.workflows.heartbeat import HEARTBEAT
from temporal_plans.workflows.kills import Kills
from temporal_plans.workflows.outbox import Outbox
from temporal_plans.workflows.service_changes import ServiceChanges
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_plans import DECOMMISSION, DEPLOY, ServicePlans
from temporal_plans.workflows.service_recovery import ServiceRecovery
from temporal_plans.workflows.service_tasks import ServiceTasks

ANSWER_WITHIN = timedelta(seconds=30)
"""How long a deployment waits for its plan to begin before it answers that it is under way."""


class ServiceDeployments:
    """One change at a time: it is checked, and then refused, or accepted and its plans begun.

    ``input`` says how the service is run beside its configuration; ``specs`` are the plans of the
    configuration in force, by name; ``rejected`` is why another was refused since. ``done_once``:
    some configuration was deployed to its end; ``updates``: the one in force came after that.
    """

    def __init__(
        self,
        input: ServiceInput,
        state: ServiceState,
        *,
        announced: bool,
        configs: ServiceConfigs,
        changes: ServiceChanges,
        plans: ServicePlans,
        tasks: ServiceTasks,
        recovery: ServiceRecovery,
        kills: Kills,
        outbox: Outbox,
    ) -> None:
        """``announced``: somebody was told already that the configuration in force is deployed."""
        self.input = input
        self.specs: dict[str, PlanSpec] = {}
        self.rejected = state.rejected
        self.done_once = state.deployed_once
        self.updates = state.updates
        self._configs = configs
        self._changes = changes
        self._plans = plans
        self._tasks = tasks
        self._recovery = recovery
        self._kills = kills
        self._outbox = outbox
        self._changing = asyncio.Lock()
        self._announced = announced

    # --- the first ---

    def resume(self) -> None:
        """Have the plans of the configuration in force. Raises SpecError."""
        self.specs = self._changes.plans(self._configs.target, deployed_once=self.updates)

    async def install(self) -> tuple[Problem, ...]:
        """Check the first configuration, and begin its plans; why it can't be deployed."""
        problems = await self._check(None, self.input)
        if problems:
            return problems
        try:
            self.resume()
        except SpecError as error:
            return tuple(error.problems)
        begin = PlanBegin(
            rollout=self.input.rollout,
            by=self.input.by,
            reason=self.input.reason,
            what="installed",
        )
        self._plans.begin(DEPLOY, begin)
        for name in self.specs:
            if name != DEPLOY:
                self._plans.begin(name, PlanBegin(interrupted=True, what="waits to be started"))
        return ()

    # --- those that follow ---

    async def deploy(
        self, wanted: Callable[[], ServiceInput], source: str, refuse: Callable[[], None]
    ) -> tuple[ServiceInput, DeployResult]:
        """Have another configuration, or the same again. ``wanted`` is asked when no other change
        is under way. ``source`` is the id of the one that it repeats. ``refuse`` raises when it is
        too late for any."""
        async with self._changing:
            input = wanted()
            target = self._configs.target
            same = (input.spec, input.plans) == (target.spec, target.plans)
            problems = () if same else await self._check(target, input)
            refuse()  # the service may have begun to go while this waited
            if same:
                result = self._again(input)
            elif problems:
                result = self._reject(input, problems)
            else:
                result = self._accept(input, source)
            await wait_or_timeout(lambda: self._plans.settled(DEPLOY), ANSWER_WITHIN)
        return input, result

    async def _check(
        self, target: Configuration | None, input: ServiceInput
    ) -> tuple[Problem, ...]:
        """Why this can't be deployed. By an activity: developers' rules may change, and what they
        said must not."""
        answer = await workflow.execute_activity(
            "check_change",
            ChangeCheck(
                before=target.spec if target else None,
                after=input.spec,
                plans=input.plans,
                rollout=input.rollout,
                deployed_once=self.done_once,
            ),
            result_type=ChangeProblems,
            start_to_close_timeout=timedelta(minutes=1),
            heartbeat_timeout=HEARTBEAT,
            summary="may this be deployed",
        )
        problems: tuple[Problem, ...] = answer.problems
        if target is not None and input.pool != self.input.pool:
            problems += (_moved(self.input.pool, input.pool),)
        return problems

    def _again(self, input: ServiceInput) -> DeployResult:
        """The configuration is in force already; what else was said counts."""
        announced, self._announced = self._announced, True
        self.input = self.input.but(backoff=input.backoff, recovery=input.recovery)
        cleared = bool(self.rejected)
        if cleared:
            self._say_faults(())
        message = "nothing changed"
        if not announced:
            message = f"plan {self._plans.workflow_id(DEPLOY)} is under way"
        elif cleared:
            message = "the configuration that was refused is forgotten"
        return self._answer(message, changed=not announced or cleared)

    def _reject(self, input: ServiceInput, problems: tuple[Problem, ...]) -> DeployResult:
        """The old configuration stays, and its deploy plan shows why (reference 5.7)."""
        self._say_faults(tuple(shortened(str(problem)) for problem in problems))
        outcome = Outcome(
            code=417,
            message=f"the configuration was refused, number {self._configs.target.number} stays",
            changed=False,
        )
        change = ChangeView(pods=self._changes.changes(input), problems=problems)
        return self._answer("", changed=False).but(outcome=outcome, change=change)

    def _say_faults(self, errors: tuple[str, ...]) -> None:
        self.rejected = errors
        if self._plans.is_open(DEPLOY):
            self._outbox.put(self._plans.workflow_id(DEPLOY), "faults", PlanFaults(errors=errors))
        elif errors:
            self._plans.begin(DEPLOY, PlanBegin(what="a configuration was refused"))

    def _accept(self, input: ServiceInput, source: str) -> DeployResult:
        before, change = self.specs, self._changes.changes(input)
        before_id = self._configs.target.id
        configuration = self._configs.make(input, source)
        specs = self._changes.plans(configuration, deployed_once=self.done_once)
        self._configs.accept(configuration)
        self.updates = self.done_once
        self.input = self.input.but(backoff=input.backoff, recovery=input.recovery)
        self.rejected, self._announced = (), True
        self.specs = specs
        for record in self._changes.take_effect(tuple(self.specs.values())):
            self._kills.kill(record.ref, "no plan has it any more")
        used = {record.config_id for record in self._tasks.records.values()}
        self._configs.prune(used | self._recovery.configs | {before_id})
        begin = PlanBegin(
            rollout=input.rollout, by=input.by, reason=input.reason, what=summary(change)
        )
        self._plans.begin(DEPLOY, begin)
        self._change_others(before)
        message = f"plan {self._plans.workflow_id(DEPLOY)} is under way"
        return self._answer(message, changed=True).but(change=ChangeView(pods=change))

    def _change_others(self, before: dict[str, PlanSpec]) -> None:
        """Plans beside deploy: those that changed begin anew, WAITING; others are left alone."""
        for name in dict.fromkeys((*before, *self.specs)):
            if name == DEPLOY or before.get(name) == self.specs.get(name):
                continue
            if name in self.specs:
                self._plans.begin(name, PlanBegin(interrupted=True, what="waits to be started"))
            else:
                self._plans.drop(name)
        if self._changes.decommission() is not None:
            self._plans.begin(DECOMMISSION, PlanBegin(what="takes away what is no more wanted"))
        else:
            self._plans.drop(DECOMMISSION)

    def _answer(self, message: str, *, changed: bool) -> DeployResult:
        target = self._configs.target
        return DeployResult(
            config_id=target.id,
            number=target.number,
            plan=self._plans.workflow_id(DEPLOY),
            outcome=Outcome(code=200, message=message, changed=changed),
        )

    # --- the end of a deployment ---

    def overtaken(self, report: PlanReport) -> None:
        """Another deployment takes its place: what somebody forced in it stays forced."""
        former = self._configs.find(str(self._plans.last_run(DEPLOY).config)).id
        pending = self._plans.pending[DEPLOY]
        self._plans.pending[DEPLOY] = pending.but(forced=report.forced, former=former)

    def complete(self) -> None:
        """It came to its end."""
        self.done_once, self.rejected = True, ()


def _moved(pool: str, wanted: str) -> Problem:
    return Problem(
        path="pool",
        message=f"the service is on pool {pool}, and a service can't move to another",
        value=wanted,
        fix=f"deploy it with --pool {pool}, or under another name",
    )
