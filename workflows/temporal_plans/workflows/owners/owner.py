"""The base class of the workflows that own plans.

An owner runs until it is uninstalled and has no child workflows (design 4): it starts plans
through an activity, and they report to its fixed id. A wing overrides the hooks: they define the
owner's plans, their inputs, and the wing's own work. The smallest owner is in
``tests/workflows/owner_programs.py``.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import BaseModel
from temporalio import workflow
from temporalio.common import RawValue

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.constraints.rule import first_refusal
from temporal_plans.domain.owners.admission import (
    RULES,
    AdmissionRule,
    OwnerSituation,
    StartRequest,
)
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.owners import (
    OwnerState,
    PlanBegin,
    PlanRecord,
    StartPlan,
    UninstallMessage,
    UninstallRequest,
)
from temporal_plans.messages.plans import CommandLog, FirstCommand, PlanInput, PlanReport
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.handlers import should_continue_as_new, wait_or_timeout
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.owners.outbox import Outbox
from temporal_plans.workflows.owners.plans import OwnedPlans
from temporal_plans.workflows.plans.log import CommandLogger

LAST_MESSAGES_TIMEOUT = timedelta(seconds=5)
"""How long a run that is about to end sends its messages; the next run sends the rest."""

LOST_PLAN_RETRY_INTERVAL = timedelta(seconds=10)
"""The pause before a plan that must always run is started again."""

DEFAULT_UNINSTALL = UninstallRequest()
DEFAULT_UNINSTALL_MESSAGE = UninstallMessage()


class Owner:
    """The message handlers, and the main loop.

    A wing's class overrides the hooks below, calls ``init_owner`` in its ``@workflow.init`` and
    ``run_until_uninstalled`` in its ``@workflow.run``.
    """

    kind: ClassVar[str] = "owner"
    """The noun for this kind of owner in messages."""

    removal_plan: ClassVar[str] = "deploy"
    """The plan that removes everything when the owner is uninstalled."""

    commands: ClassVar[tuple[str, ...]] = ("uninstall",)
    """The signals that people send to this kind of owner."""

    # --- hooks --------------------------------------------------------------------------------

    @property
    def owner_name(self) -> str:
        """The owner's name, the prefix of its plans' workflow ids."""
        raise NotImplementedError

    @property
    def startable(self) -> Mapping[str, PlanSpec]:
        """The plans that an operator may start, by name."""
        raise NotImplementedError

    @property
    def history_limit(self) -> int:
        """The number of history events after which the workflow continues as new."""
        raise NotImplementedError

    @property
    def configuration_number(self) -> int:
        """The number of the configuration in force, for the run records."""
        return 0

    @property
    def admission_rules(self) -> Sequence[AdmissionRule]:
        """The rules that a request to start a plan must satisfy."""
        return RULES

    def plan_input(self, begin: PlanBegin, record: PlanRecord) -> PlanInput:
        """Return the input of a plan that starts now."""
        raise NotImplementedError

    def next_input(self, state: OwnerState) -> BaseModel:
        """Return the input of the workflow's next run. The outbox is closed by now."""
        raise NotImplementedError

    def advance(self, now: datetime) -> None:
        """Do all of the wing's work that is due. Called after every change."""

    def may_begin(self, plan: str) -> bool:
        """Whether a pending plan may start now."""
        return True

    def reported(self, report: PlanReport) -> None:
        """Handle a plan's report; the plan's record is up to date."""

    def plan_over(self, plan: str, workflow_id: str) -> None:
        """Release what a run of a plan held that has ended, with or without a report."""

    def plan_ended(self, report: PlanReport) -> None:
        """Handle the report that the newest run of a plan has ended."""

    def begin_again(self, start: StartPlan) -> PlanBegin:
        """Return how a plan begins that people start: in the state in which its last run ended."""
        command = Command(**{name: getattr(start, name) for name in Command.model_fields})
        where = " ".join(filter(None, (start.phase, start.step)))
        return PlanBegin(
            first=FirstCommand(verb=start.verb, command=command),
            by=start.by,
            reason=start.reason,
            what=f"{start.verb} {where}".strip(),
        )

    @property
    def nothing_under_way(self) -> bool:
        """Whether a new run would neither lose nor repeat work of the wing."""
        return True

    # --- construction -------------------------------------------------------------------------

    def init_owner(
        self,
        state: OwnerState,
        *,
        priorities: Mapping[str, int],
        standing: Sequence[str] = (),
    ) -> None:
        """Restore the previous run's state. ``priorities`` and ``standing`` as in OwnedPlans."""
        self.begun = self.over = False
        self.uninstalling = state.uninstalling
        self._changed = False
        self._checking_plans = False
        self._last_plan_check = workflow.now()
        self.log = CommandLogger(state.log)
        self.alarm = Alarm(self.changed)
        self.outbox = Outbox(state.unsent, self._on_sent)
        self.plans = OwnedPlans(
            state,
            owner=self.owner_name,
            outbox=self.outbox,
            make=self.plan_input,
            changed=self.changed,
            priorities=priorities,
            standing=standing,
            names=lambda: (*self.startable, self.removal_plan),
        )

    def changed(self) -> None:
        """Have the main loop check all work once more."""
        self._changed = True

    def _on_sent(self) -> None:
        """Check pending plans: one starts only when no signal to its former run is in flight."""
        if self.plans.pending:
            self.changed()

    @property
    def title(self) -> str:
        return f"{self.kind} {self.owner_name}"

    # --- the run ------------------------------------------------------------------------------

    async def run_until_uninstalled(self) -> None:
        """Run the main loop until the uninstall has ended; continue as new when needed."""
        self.outbox.resume()
        self.plans.resume()
        self.begun = True
        while not self.over:
            self._changed = False
            self._advance()
            if self._may_continue_as_new():
                await self._continue_as_new()
            await workflow.wait_condition(
                lambda: self._changed or self.over or self._may_continue_as_new()
            )
        await self._flush_outbox()
        await workflow.wait_condition(workflow.all_handlers_finished)

    def _advance(self) -> None:
        now = workflow.now()
        self.advance(now)
        self.plans.start_pending(self.may_begin, config=self.configuration_number)
        interval = self.plans.check_interval
        if interval is not None and not self._checking_plans:
            if now >= self._last_plan_check + interval:
                self._checking_plans = True
                asyncio.create_task(self._check_plans())  # noqa: RUF006  # _checking_plans
            else:
                self.alarm.at(self._last_plan_check + interval)

    async def _check_plans(self) -> None:
        """Close the records of terminated plans, which can't report, and release what they held."""
        for plan in await self.plans.find_closed():
            self.plan_over(plan.name, plan.workflow_id)
        self._last_plan_check, self._checking_plans = workflow.now(), False
        self.changed()

    def check_plans_soon(self) -> None:
        """Check at once whether the open plans still run: one may have been terminated."""
        self._last_plan_check = workflow.now() - (self.plans.check_interval or timedelta())
        self.changed()

    def ensure_running(self, plan: str, cause: str) -> bool:
        """Start a plan that must always run, if it does not. Return True when it was started.

        There is a pause when the plan has just ended, because it may be terminated repeatedly.
        """
        if self.over or self.plans.is_open(plan) or not self.plans.settled(plan):
            return False
        record = self.plans.records.get(plan)
        if record is not None and record.changed is not None:
            due = record.changed + LOST_PLAN_RETRY_INTERVAL
            if workflow.now() < due:
                self.alarm.at(due)
                return False
        self.plans.begin(plan, PlanBegin(what=cause))
        return True

    def _may_continue_as_new(self) -> bool:
        """Whether a new run may start now; a handler that waits for the main loop ends first."""
        return (
            should_continue_as_new(self.history_limit)
            and not self.over
            and workflow.all_handlers_finished()
        )

    async def _continue_as_new(self) -> None:
        """Continue as new, unless a command arrives in between.

        The wait for the outbox is short: messages may arrive without a pause, or be for a workflow
        that does not accept them.
        """
        await self._flush_outbox()
        if self._may_continue_as_new():
            workflow.continue_as_new(self.next_input(self._state()))

    async def _flush_outbox(self) -> None:
        if not self._is_idle():
            await wait_or_timeout(self._is_idle, LAST_MESSAGES_TIMEOUT)

    def _is_idle(self) -> bool:
        return self.outbox.empty and self.nothing_under_way

    def _state(self) -> OwnerState:
        return OwnerState(
            plans=self.plans.records,
            pending=self.plans.pending,
            starting=self.plans.starting,
            runs=self.plans.runs.history,
            uninstalling=self.uninstalling,
            log=self.log.log,
            unsent=self.outbox.close(),
        )

    # --- plans --------------------------------------------------------------------------------

    @workflow.signal(name="plan_changed", description="From a plan: its status, or its end.")
    def on_plan_changed(self, report: PlanReport) -> None:
        ended = self.plans.record_report(report)
        self.reported(report)
        if not report.open:  # also releases what a former run held that was reset
            self.plan_over(report.plan, report.workflow_id)
        if ended:
            self.plan_ended(report)
        self.changed()

    @workflow.update(
        name="start_plan",
        description="Run an ended plan again. Input {plan, verb, phase, step, parameters}.",
    )
    async def start_plan(self, start: StartPlan) -> Outcome:
        await workflow.wait_condition(lambda: self.begun)
        outcome = self._start_again(start)
        verb = f"{start.verb} {start.plan}"
        self.log.command(verb, start, outcome, via="update", now=workflow.now())
        await self.plans.settle(start.plan)
        return outcome

    @start_plan.validator
    def _check_start_plan(self, start: StartPlan) -> None:
        if (refusal := self._refusal_of(start)) is not None:
            raise refusal_error(refusal)

    def _refusal_of(self, start: StartPlan) -> Refusal | None:
        """Return why the plan may not be started now; None when it may."""
        situation = OwnerSituation(
            title=self.title,
            uninstalling=self.uninstalling,
            plans=tuple(dict.fromkeys((*self.plans.records, *self.startable))),
            startable=self.startable,
        )
        request = StartRequest(start.plan, start.verb, start)
        return first_refusal(self.admission_rules, request, situation, workflow.now())

    def _start_again(self, start: StartPlan) -> Outcome:
        if (refusal := self._refusal_of(start)) is not None:  # since it was checked
            return Outcome.refusing(refusal)
        is_open = self.plans.is_open(start.plan) or not self.plans.settled(start.plan)
        if is_open and not self.begins_over(start):
            self.check_plans_soon()
            text = f"plan {start.plan} is running; send the command to the plan"
            return Outcome(result=Result.ALREADY, message=text)
        self.plans.begin(start.plan, self.begin_again(start))
        text = f"plan {start.plan} starts a new run"
        return Outcome(result=Result.DONE, message=text)

    def begins_over(self, start: StartPlan) -> bool:
        """Return whether the start of a plan that is open ends that run, and begins another."""
        return False

    # --- uninstall ----------------------------------------------------------------------------

    @workflow.update(name="uninstall", description="Remove everything permanently.")
    async def uninstall(self, request: UninstallRequest = DEFAULT_UNINSTALL) -> Outcome:
        await workflow.wait_condition(lambda: self.begun)
        outcome = self.begin_uninstall(request, via="update")
        await self.plans.settle(self.removal_plan)
        return outcome

    @workflow.signal(name="uninstall", description="Remove everything permanently.")
    def on_uninstall(self, request: UninstallMessage = DEFAULT_UNINSTALL_MESSAGE) -> None:
        if request.malformed:
            self.record_problem("uninstall", request.malformed)
        else:
            self.begin_uninstall(request, via="signal")

    def begin_uninstall(self, request: UninstallRequest, *, via: str) -> Outcome:
        """Start the removal plan, and supersede all others."""
        text = f"{self.title} is being uninstalled"
        if self.uninstalling:
            outcome = Outcome(result=Result.ALREADY, message=f"{text} already")
        else:
            self.uninstalling = True
            self.plans.pending.clear()
            for name in list(self.plans.records):
                if name != self.removal_plan and self.plans.is_open(name):
                    self.plans.supersede(name, f"the {self.kind} is uninstalled")
            begin = PlanBegin(by=request.by, reason=request.reason, what="uninstall")
            self.plans.begin(self.removal_plan, begin)
            outcome = Outcome(result=Result.DONE, message=text)
        command = Command(by=request.by, reason=request.reason)
        self.log.command("uninstall", command, outcome, via=via, now=workflow.now())
        return outcome

    def refuse_when_uninstalling(self) -> None:
        """Raise ApplicationError when the owner is being uninstalled."""
        if self.uninstalling:
            raise refused(
                Code.UNINSTALLING,
                f"{self.title} is being uninstalled",
                fix="deploy it after the uninstall has ended",
            )

    # --- queries ------------------------------------------------------------------------------

    @workflow.query(name="runs", description="All runs of its plans, oldest first.")
    def runs(self) -> RunHistory:
        return self.plans.runs.history

    @workflow.query(name="log", description="The commands given to the owner itself.")
    def command_log(self) -> CommandLog:
        return self.log.log

    def record_problem(self, name: str, text: str, trace: str = "") -> None:
        """Record a message whose handler failed (the guard calls this), or a failure of developers'
        code with its ``trace``, in the command log; the latter in the worker's log as well."""
        if trace:
            workflow.logger.error("%s: %s\n%s", name, text, trace)
        self.log.problem(name, text, now=workflow.now(), trace=trace)

    @workflow.signal(dynamic=True, description="Signals with unknown names are kept in the log.")
    def on_unknown_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.record_problem(name, f"unknown signal {name}; {suggestion(name, self.commands)}")
