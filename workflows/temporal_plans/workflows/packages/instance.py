"""The Instance workflow: an operator package that is installed in a cluster.

It has the id of a service and the messages of one. It runs until it is uninstalled. What is
installed, which plan a change starts, and which plan may run beside which, is decided in
``domain/packages``.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.owners.admission import AdmissionRule, has_the_element
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.packages.readiness import readiness
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.loading.packages.structures import decode
from temporal_plans.messages.owners import (
    OwnerResult,
    OwnerState,
    PlanBegin,
    PlanRecord,
    UninstallRequest,
)
from temporal_plans.messages.packages import (
    Adopted,
    InstanceInput,
    InstanceState,
    installed_package,
)
from temporal_plans.messages.plans import PlanInput, PlanReport
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.packages.adoption import former_plans
from temporal_plans.workflows.packages.contents import HeldContents
from temporal_plans.workflows.packages.deploying import Deploying
from temporal_plans.workflows.packages.inventory import InventoryMessages
from temporal_plans.workflows.packages.observation import ObjectWatch
from temporal_plans.workflows.packages.plan_inputs import InstancePlans, Removal
from temporal_plans.workflows.packages.queries import InstanceQueries

_ENDS = "its plan cleanup failed"


@workflow.defn(name="Instance")
class Instance(Deploying, InventoryMessages, InstanceQueries):
    """The entity ``service/<name>`` of a package. Ends when it has been uninstalled."""

    kind = "service"
    removal_plan = CLEANUP

    @workflow.init
    def __init__(self, input: InstanceInput) -> None:
        state = input.state or InstanceState()
        self._input = input.but(state=None)
        self._configs = ConfigurationBook[PackageConfiguration](state.configs, state.target)
        self._installs = not self._configs.has_target
        self._inventory = {one.key: one for one in state.inventory}
        self._services = state.services
        self._rejected = state.rejected
        self._volumes, self._force = state.volumes, state.force
        self._refusal: Refusal | None = None
        self._reported = not self._installs
        self._uids = dict(state.uids)
        self.init_owner(state.owner, priorities={})
        self._contents = HeldContents(state.held, self.changed, self.record_problem)
        self._watch = ObjectWatch(state.seen, self.changed)
        self._readiness = state.readiness
        self._hashes = state.hashes
        self._plan_inputs = InstancePlans(input.name, self._configs, self._uids)
        if self._installs:
            self._accept_first(input)

    def _accept_first(self, input: InstanceInput) -> None:
        resolved = resolve(None, input.change, decode)
        if isinstance(resolved, Refusal):
            self._refusal = resolved
        elif input.adopted is not None:
            self._adopt(resolved, input, input.adopted)
        else:
            self._accept(resolved, input)

    def _adopt(self, resolved: Resolved, input: InstanceInput, adopted: Adopted) -> None:
        """Begin with what is in the cluster already: no plan starts."""
        self._install(resolved, input)
        self._inventory = {one.key: one for one in adopted.inventory}
        self._hashes = adopted.hashes
        self._uids.update({run.plan: run.uid for run in adopted.runs})
        former = former_plans(adopted.runs, self._configs.target, self.plans.workflow_id)
        self.plans.records.update(former.records)
        for run in former.runs:
            self.plans.runs.add(run)

    @workflow.run
    async def run(self, input: InstanceInput) -> OwnerResult:
        require_plugin()
        if self._refusal is not None:
            await workflow.wait_condition(workflow.all_handlers_finished)
            text = "this package can't be installed:\n" + str(self._refusal)
            raise refusal_error(self._refusal, text=text, type="InvalidService")
        await self.run_until_uninstalled()
        await self._contents.release_all()
        return OwnerResult(
            name=self.owner_name, content="package", log=self.log.log, runs=self.plans.runs.history
        )

    # --- hooks: values ---

    @property
    def owner_name(self) -> str:
        return self._input.name

    @property
    def startable(self) -> Mapping[str, PlanSpec]:
        return self._plan_inputs.startable

    @property
    def admission_rules(self) -> Sequence[AdmissionRule]:
        return (self.is_admitted, has_the_element)

    @property
    def history_limit(self) -> int:
        return self._input.history_limit

    @property
    def configuration_number(self) -> int:
        return self._configs.target.number

    def plan_input(self, begin: PlanBegin, record: PlanRecord) -> PlanInput:
        return self._plan_inputs.make(
            begin, record, self._input.backoff, self._removal(), self._hashes
        )

    def next_input(self, state: OwnerState) -> InstanceInput:
        carried = InstanceState(
            owner=state,
            configs=self._configs.all,
            target=self._configs.target.id,
            uids=self._uids,
            inventory=tuple(self._inventory.values()),
            hashes=self._hashes,
            services=self._services,
            held=tuple(sorted(self._contents.held)),
            rejected=self._rejected,
            seen=self._watch.last,
            readiness=self._readiness,
            volumes=self._volumes,
            force=self._force,
        )
        return self._input.but(state=carried, adopted=None)

    # --- hooks: events ---

    @property
    def nothing_under_way(self) -> bool:
        return self._contents.idle

    def advance(self, now: datetime) -> None:
        packages = [one.installation.package for one in self._configs.all]
        self._contents.keep({digest for one in packages for digest in (one.content, *one.contents)})
        if self.uninstalling:
            self.ensure_running(CLEANUP, "the uninstall is retried")
        else:
            self._look_at_objects(now)

    def _look_at_objects(self, now: datetime) -> None:
        """Look while no plan is at work, and judge whether the instance is ready."""
        plans = self.plan_situations()
        if self._inventory and all(plan.is_idle for plan in plans):
            installation = self._configs.target.installation
            package = installed_package(self.owner_name, installation)
            interval = installation.switches.look_interval
            if (due := self._watch.tend(package, now, interval)) is not None:
                self.alarm.at(due)
        report = self._watch.last.report if self._watch.last else None
        reports, problem = (report.objects, report.problem) if report else (None, "")
        self._readiness = readiness(plans, reports, self._readiness, now, problem=problem)

    def may_begin(self, plan: str) -> bool:
        open_plans = [name for name in self.plans.records if self.plans.is_open(name)]
        if self.uninstalling:
            return plan == CLEANUP and not set(open_plans) - {CLEANUP}
        return not any(self.excludes(plan, other) for other in open_plans if other != plan)

    def reported(self, report: PlanReport) -> None:
        """Leave out a plan ``cleanup`` that failed, where the package was written for that."""
        failed = report.plan == CLEANUP and report.open and report.status is Status.ERROR
        switches = self._configs.target.installation.switches
        newest = self.plans.is_newest(report) and self.plans.settled(CLEANUP)
        if failed and newest and not self._force and switches.failed_cleanup == "end":
            self.begin_uninstall(UninstallRequest(force=True, reason=_ENDS), via="plan")

    def plan_ended(self, report: PlanReport) -> None:
        self._watch.look_soon()
        done = report.status is Status.COMPLETE and not report.superseded
        if report.plan == CLEANUP and done:
            self.over = CLEANUP not in self.plans.pending

    # --- uninstall ---

    def begin_uninstall(self, request: UninstallRequest, *, via: str) -> Outcome:
        """Start the plan ``cleanup``, and supersede all others. A later request with ``force`` has
        the package's own phases left out."""
        forces = self.uninstalling and request.force and not self._force
        self._volumes = self._volumes or request.volumes
        self._force = self._force or request.force
        outcome = super().begin_uninstall(request, via=via)
        if forces:
            begin = PlanBegin(by=request.by, reason=request.reason, what="uninstall by force")
            self.plans.begin(CLEANUP, begin)
            text = f"{self.title} is being uninstalled without its own plan {CLEANUP}"
            outcome = Outcome(result=Result.DONE, message=text)
        return outcome

    def _removal(self) -> Removal:
        return Removal(volumes=self._volumes, own_plan=not self._force)
