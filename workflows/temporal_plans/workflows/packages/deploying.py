"""Deployments of an instance: what is asked for, and the plan that it starts."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.owners.admission import OwnerSituation, StartRequest
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.admission import (
    Admission,
    InstanceRequest,
    InstanceSituation,
    admission,
)
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.configuration import PackageConfiguration, rollback_request
from temporal_plans.domain.packages.plans import exclude_each_other
from temporal_plans.domain.packages.resolution import Resolved
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.loading.packages.structures import decode
from temporal_plans.messages.owners import PlanBegin, Rollback, StartPlan
from temporal_plans.messages.packages import InstanceInput, PackageDeployResult
from temporal_plans.workflows.owners.owner import Owner


class Deploying(Owner):
    """A base class of the Instance workflow: the updates ``deploy`` and ``rollback``, and which
    plan may begin beside which.

    ``_refusal`` is why the first configuration can't be installed; ``_reported``: a caller has got
    the answer that the installation is under way.
    """

    _input: InstanceInput
    _configs: ConfigurationBook[PackageConfiguration]
    _refusal: Refusal | None
    _rejected: tuple[str, ...]
    _reported: bool

    @workflow.update(name="deploy", description="Install, or change what is installed.")
    async def deploy(self, input: InstanceInput) -> PackageDeployResult:
        await workflow.wait_condition(lambda: self.begun or self._refusal is not None)
        if self._refusal is not None:
            return self._refused(self._refusal)
        self.refuse_when_uninstalling()
        return await self._deploy(input, input.change)

    @deploy.validator
    def _check_deploy(self, input: InstanceInput) -> None:
        self.refuse_when_uninstalling()
        if input.adopted is not None and input.adopted != self._input.adopted:
            problem = f"{self.title} is installed already: it can't be taken over from a cluster"
            fix = "take it over under another name, or deploy it without `adopted`"
            raise refusal_error(Refusal.of(Code.NAME_TAKEN, problem, field="adopted", fix=fix))
        self._check_way(input.change)

    @workflow.update(
        name="rollback", description="Deploy an earlier configuration again. Input {config}."
    )
    async def rollback(self, request: Rollback) -> PackageDeployResult:
        await workflow.wait_condition(lambda: self.begun)
        self.refuse_when_uninstalling()
        found = self._configs.find(request.config)
        input = self._input.but(by=request.by, reason=request.reason, adopted=None)
        return await self._deploy(input, rollback_request(found), source=found.id)

    @rollback.validator
    def _check_rollback(self, request: Rollback) -> None:
        self.refuse_when_uninstalling()
        self._check_way(rollback_request(self._configs.find(request.config)))

    def _check_way(self, change: ChangeRequest) -> None:
        """Raise the refusal of a change whose plan may not begin now. One that is wrong in itself
        is refused by the answer, and shown by the status until another is deployed."""
        if self._configs.has_target:
            admitted = self.admit(change)
            if admitted.refusal is not None and admitted.refusal.code != Code.CONFIGURATION:
                raise refusal_error(admitted.refusal)

    # --- a change ---

    async def _deploy(
        self, input: InstanceInput, change: ChangeRequest, source: str = ""
    ) -> PackageDeployResult:
        admitted = self.admit(change)
        if admitted.refusal is not None:
            result = self._refused(admitted.refusal)
        elif admitted.plan and admitted.resolved is not None:
            result = self._accept(admitted.resolved, input, source, admitted.superseded)
        elif admitted.resolved is not None and self._differs_in_settings(admitted.resolved):
            result = self._reset(admitted.resolved, input, source)
        else:
            result = self._unchanged(input)
        command = Command(by=input.by, reason=input.reason)
        verb = "deploy" if result.outcome.refused else f"deploy {result.number}"
        self.log.command(verb, command, result.outcome, via="update", now=workflow.now())
        if result.plan:
            await self.plans.settle(result.plan.rpartition("/")[2])
        return result

    def _accept(
        self,
        resolved: Resolved,
        input: InstanceInput,
        source: str = "",
        superseded: Sequence[str] = (),
    ) -> PackageDeployResult:
        """Make it the configuration in force, and begin the plan of the change."""
        plan = resolved.change.plan
        self._install(resolved, input, source)
        self._make_way(plan, superseded)
        begin = PlanBegin(by=input.by, reason=input.reason, what=resolved.change.summary)
        self.plans.begin(plan, begin)
        outcome = Outcome(
            result=Result.DONE, message=f"plan {self.plans.workflow_id(plan)} is under way"
        )
        return self._answer(outcome, plan).but(change=resolved.change)

    def _install(self, resolved: Resolved, input: InstanceInput, source: str = "") -> None:
        """Make it the configuration in force."""
        configuration = PackageConfiguration(
            id=str(workflow.uuid4()),
            number=self._configs.next_number,
            at=workflow.now(),
            by=input.by,
            reason=input.reason,
            source=source,
            installation=resolved.installation,
        )
        self._reported = self._configs.has_target
        self._configs.accept(configuration)
        self._configs.prune(set())
        self._input = self._input.but(backoff=input.backoff, change=ChangeRequest())
        self._rejected = ()

    def _differs_in_settings(self, resolved: Resolved) -> bool:
        return resolved.installation.switches != self._configs.target.installation.switches

    def _reset(self, resolved: Resolved, input: InstanceInput, source: str) -> PackageDeployResult:
        """Make it the configuration in force: only settings differ, for which no plan runs."""
        self._install(resolved, input, source)
        self.changed()
        outcome = Outcome(result=Result.DONE, message="its settings are changed; no plan runs")
        return self._answer(outcome, "").but(change=resolved.change)

    def _unchanged(self, input: InstanceInput) -> PackageDeployResult:
        """Answer that nothing changed; the first caller gets the answer to the installation."""
        if input.adopted is not None:
            outcome = Outcome(result=Result.DONE, message=f"{self.title} is taken over")
            return self._answer(outcome, "")
        reported, self._reported = self._reported, True
        self._input = self._input.but(backoff=input.backoff)
        plan = self._newest_plan
        if reported:
            return self._answer(Outcome(result=Result.NOTHING, message="nothing changed"), "")
        message = f"plan {self.plans.workflow_id(plan)} is under way"
        return self._answer(Outcome(result=Result.DONE, message=message), plan)

    def _refused(self, refusal: Refusal) -> PackageDeployResult:
        if self._configs.has_target:
            self._rejected = tuple(shortened(str(one)) for one in refusal.reasons)
            answer = self._answer(Outcome.refusing(refusal), "")
        else:
            answer = PackageDeployResult(config_id="", plan="", outcome=Outcome.refusing(refusal))
        return answer.but(problems=refusal.reasons)

    def _answer(self, outcome: Outcome, plan: str) -> PackageDeployResult:
        target = self._configs.target
        return PackageDeployResult(
            config_id=target.id,
            number=target.number,
            plan=self.plans.workflow_id(plan) if plan else "",
            outcome=outcome,
        )

    @property
    def _newest_plan(self) -> str:
        """The plan that was begun last."""
        return next(reversed(self.plans.pending or self.plans.records))

    # --- which plan may begin ---

    def admit(self, request: InstanceRequest) -> Admission:
        """Return whether a request is admitted now, and what it does."""
        situation = InstanceSituation(
            title=self.title,
            installation=self._configs.target.installation,
            plans=self.plan_situations(),
            uninstalling=self.uninstalling,
        )
        return admission(situation, request, decode)

    def plan_situations(self) -> list[PlanSituation]:
        """Return the last reports of its plans, in the order of their last changes. One that is
        about to start counts as open."""
        never = datetime.min.replace(tzinfo=UTC)
        records = sorted(self.plans.records.values(), key=lambda one: one.changed or never)
        return [
            PlanSituation(
                plan=record.name,
                status=record.status,
                open=record.open or not self.plans.settled(record.name),
                resting=record.resting,
                stopped=record.stopped,
            )
            for record in records
        ]

    def excludes(self, plan: str, other: str) -> bool:
        """Whether two plans of the installed package must not run at the same time."""
        return exclude_each_other(self._configs.target.installation.package.plans, plan, other)

    def _make_way(self, plan: str, superseded: Iterable[str]) -> None:
        for other in superseded:
            if other != plan:
                self.plans.pending.pop(other, None)
                self.plans.supersede(other, f"plan {plan} takes its place")

    def is_admitted(
        self, request: StartRequest, owner: OwnerSituation, now: datetime
    ) -> Refusal | None:
        """The plan may be started by people, with these values, and none that excludes it is at
        work."""
        return self.admit(request).refusal

    def begins_over(self, start: StartPlan) -> bool:
        """Every start is a run of its own; a restart is for the run that is open. A schedule, which
        finds its start by the mark, starts nothing over that another began just now."""
        return start.verb is Verb.START and not start.mark

    def begin_again(self, start: StartPlan) -> PlanBegin:
        """A plan begins from its start, but for the restart of a phase or a step."""
        request = StartRequest(start.plan, start.verb, start)
        self._make_way(start.plan, self.admit(request).superseded)
        begin = super().begin_again(start)
        if start.verb is Verb.RESTART and (start.phase or start.step):
            return begin
        given = " ".join(f"{name}={value}" for name, value in start.parameters.items())
        what = shortened(f"{begin.what} {given}".strip())
        return begin.but(first=None, arguments=start.parameters, what=what)
