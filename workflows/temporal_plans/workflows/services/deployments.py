"""The deployments of a service: requested configurations, and their outcomes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.change import summary
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.plan_names import DECOMMISSION, DEPLOY
from temporal_plans.domain.services.recovery.keeper import RecoveryKeeper
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, SpecError
from temporal_plans.domain.values.text import listed, shortened
from temporal_plans.messages.owners import PlanBegin
from temporal_plans.messages.plans import PlanFaults, PlanReport
from temporal_plans.messages.services import (
    ChangeCheck,
    ChangeProblems,
    DeployResult,
    ServiceInput,
    ServiceState,
)
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.owners.outbox import Outbox
from temporal_plans.workflows.owners.plans import OwnedPlans
from temporal_plans.workflows.services.changes import ServiceChanges
from temporal_plans.workflows.services.configurations import new_configuration
from temporal_plans.workflows.services.kills import Kills

_PROBLEM_LIMIT = 200
"""Characters of what is wrong in the log and the history; the plan deploy has all of it."""

CHECK_ATTEMPTS_LIMIT = 10
"""Attempts at the check of a configuration. The activity answers failures of developers' rules, so
what fails is the worker: it was killed, or answers in another form."""


class ServiceDeployments:
    """Checks one configuration at a time, then refuses it, or accepts it and starts its plans.

    ``input`` has the service's settings beside the configuration; ``specs`` are the plans of the
    configuration in force, by name; ``rejected`` are the errors of a configuration refused since.
    ``done_once``: a deployment has completed; ``updates``: that was before the configuration in
    force was accepted.
    """

    def __init__(
        self,
        input: ServiceInput,
        state: ServiceState,
        *,
        reported: bool,
        configs: ConfigurationBook[Configuration],
        changes: ServiceChanges,
        plans: OwnedPlans,
        tasks: TaskBook,
        recovery: RecoveryKeeper,
        kills: Kills,
        outbox: Outbox,
    ) -> None:
        """``reported``: a caller has already got the answer that the deployment is under way."""
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
        self._reported = reported

    # --- the first configuration ---

    def resume(self) -> None:
        """Generate the plans of the configuration in force. Raises SpecError."""
        self.specs = self._changes.plans(self._configs.target, deployed_once=self.updates)

    async def install(self) -> tuple[Reason, ...]:
        """Check the first configuration, and start its plans; return why it can't be deployed."""
        check = await self._check(None, self.input)
        if check.problems:
            return check.problems
        try:
            self.resume()
        except SpecError as error:
            return tuple(error.reasons)
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

    # --- later configurations ---

    async def deploy(
        self, wanted: Callable[[], ServiceInput], source: str, refuse: Callable[[], None]
    ) -> tuple[ServiceInput, DeployResult]:
        """Deploy another configuration, or the same again.

        ``wanted`` is called when no other change is under way. ``source`` is the id of the
        configuration that a rollback repeats. ``refuse`` raises when the service is being
        uninstalled.
        """
        async with self._changing:
            input = wanted()
            target = self._configs.target
            same = (input.spec, input.plans) == (target.spec, target.plans)
            check = ChangeProblems() if same else await self._check(target, input)
            check = self._with_pool(check, input)
            refuse()  # an uninstall may have started meanwhile
            if check.problems:
                result = self._reject(input, check)
            elif same:
                result = self._keep_target(input)
            else:
                result = self._accept(input, source)
            await self._plans.settle(DEPLOY)
        return input, result

    async def _check(self, target: Configuration | None, input: ServiceInput) -> ChangeProblems:
        """Return why this can't be deployed. An activity checks it, because developers' rules may
        change, and their verdict must be the same in a replay."""
        check = ChangeCheck(
            before=target.spec if target else None,
            after=input.spec,
            plans=input.plans,
            rollout=input.rollout,
            deployed_once=self.done_once,
        )
        try:
            answer: ChangeProblems = await workflow.execute_activity(
                "check_change",
                check,
                result_type=ChangeProblems,
                start_to_close_timeout=timedelta(minutes=1),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=CHECK_ATTEMPTS_LIMIT),
                summary="check the configuration",
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            answer = ChangeProblems(problems=(_unchecked(error),))
        return answer

    def _with_pool(self, check: ChangeProblems, input: ServiceInput) -> ChangeProblems:
        """Add the refusal of another pool."""
        if input.pool == self.input.pool:
            return check
        refusal = _pool_change_refusal(self.input.pool, input.pool)
        options = check.options or not check.problems
        return check.but(problems=(*check.problems, refusal), options=options)

    def _keep_target(self, input: ServiceInput) -> DeployResult:
        """Keep the configuration, which is in force already, but apply the other settings."""
        reported, self._reported = self._reported, True
        change = self._changes.changes(input, self.input)
        self.input = self.input.but(backoff=input.backoff, recovery=input.recovery)
        cleared = bool(self.rejected)
        if cleared:
            self._report_faults((), input)
        message = "nothing changed"
        if change.settings:
            message = f"no new configuration; changed: {summary((), (), change.settings)}"
        if not reported:
            message = f"plan {self._plans.workflow_id(DEPLOY)} is under way"
        elif cleared:
            message = "the errors of the refused configuration are cleared"
        answer = self._answer(message, changed=not reported or cleared)
        return answer.but(change=change) if change.settings else answer

    def _reject(self, input: ServiceInput, check: ChangeProblems) -> DeployResult:
        """Refuse a configuration; the plan deploy shows the errors (behaviour 5.7). Wrong options
        change nothing."""
        problems, target = check.problems, self._configs.target
        if not check.options:
            self._report_faults(problems, input)
        refused = "the options are" if check.options else "the configuration was"
        outcome = Outcome(
            result=Result.REFUSED,
            message=f"{refused} refused; number {target.number} stays in force: "
            f"{_first_of(problems)}",
            refusal=Refusal(code=Code.CONFIGURATION, reasons=problems),
        )
        change = self._changes.changes(input, self.input).but(problems=problems)
        return self._answer("", changed=False).but(outcome=outcome, change=change)

    def _report_faults(self, problems: tuple[Reason, ...], input: ServiceInput) -> None:
        errors = self.rejected = tuple(shortened(str(problem)) for problem in problems)
        if self._plans.is_open(DEPLOY):
            self._outbox.put(self._plans.workflow_id(DEPLOY), "faults", PlanFaults(errors=errors))
        elif errors:
            fields = dict.fromkeys(one.field or "all of it" for one in problems)
            what = shortened(f"refused: {listed(list(fields), 3)}", _PROBLEM_LIMIT)
            self._plans.begin(DEPLOY, PlanBegin(by=input.by, reason=input.reason, what=what))

    def _accept(self, input: ServiceInput, source: str) -> DeployResult:
        before, change = self.specs, self._changes.changes(input, self.input)
        before_id = self._configs.target.id
        configuration = new_configuration(self._configs, input, source)
        specs = self._changes.plans(configuration, deployed_once=self.done_once)
        self._configs.accept(configuration)
        self.updates = self.done_once
        self.input = self.input.but(backoff=input.backoff, recovery=input.recovery)
        self.rejected, self._reported = (), True
        self.specs = specs
        for record in self._changes.take_effect(tuple(self.specs.values())):
            self._kills.kill(record.ref, "no plan contains it any more")
        used = {record.config_id for record in self._tasks.records.values()}
        self._configs.prune(used | self._recovery.configs | {before_id})
        begin = PlanBegin(
            rollout=input.rollout,
            by=input.by,
            reason=input.reason,
            what=summary(change.pods, change.plans, change.settings),
        )
        self._plans.begin(DEPLOY, begin)
        self._change_others(before)
        message = f"plan {self._plans.workflow_id(DEPLOY)} is under way"
        return self._answer(message, changed=True).but(change=change)

    def _change_others(self, before: dict[str, PlanSpec]) -> None:
        """Restart the plans other than deploy that changed, as WAITING; others continue."""
        for name in dict.fromkeys((*before, *self.specs)):
            if name == DEPLOY or before.get(name) == self.specs.get(name):
                continue
            if name in self.specs:
                self._plans.begin(name, PlanBegin(interrupted=True, what="waits to be started"))
            else:
                self._plans.drop(name)
        if self._changes.decommission() is not None:
            self._plans.begin(
                DECOMMISSION, PlanBegin(what="removes pods that the configuration no longer has")
            )
        else:
            self._plans.drop(DECOMMISSION)

    def _answer(self, message: str, *, changed: bool) -> DeployResult:
        target = self._configs.target
        return DeployResult(
            config_id=target.id,
            number=target.number,
            plan=self._plans.workflow_id(DEPLOY),
            outcome=Outcome(result=Result.DONE if changed else Result.NOTHING, message=message),
        )

    # --- the end of a deployment ---

    def superseded(self, report: PlanReport) -> None:
        """Handle a superseded deployment: the next one keeps the forced elements."""
        former = self._configs.find(str(self._plans.runs.last(DEPLOY).config)).id
        pending = self._plans.pending[DEPLOY]
        self._plans.pending[DEPLOY] = pending.but(forced=report.forced, former=former)

    def complete(self) -> None:
        """Handle a completed deployment."""
        self.done_once, self.rejected = True, ()


def _unchecked(error: ActivityError) -> Reason:
    return Reason(
        problem=f"the configuration could not be checked: {typed_failure_text(error)}",
        fix="see the worker's log, and deploy it again",
    )


def _pool_change_refusal(pool: str, wanted: str) -> Reason:
    return Reason(
        field="pool",
        problem=f"can't change, the service is on pool {pool}",
        value=wanted,
        fix=f"deploy with --pool {pool}, or under another service name",
    )


def _first_of(problems: tuple[Reason, ...]) -> str:
    """Return the first problem on one line, and the number of others."""
    first, *others = problems
    more = f" (and {len(others)} more)" if others else ""
    return shortened(" ".join(str(first).split()), _PROBLEM_LIMIT) + more
