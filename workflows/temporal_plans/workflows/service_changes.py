"""What a service's plans are, and what a new configuration makes of them (reference 5.4-5.8)."""

from collections.abc import Callable, Sequence

from temporalio import workflow

from temporal_plans.domain.board import PlanBoard, PlanState
from temporal_plans.domain.change import PodChange
from temporal_plans.domain.comparison import pod_changes, relabelled
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.deployable import DEPLOY, plans_of, problems
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.initial_state import Former, initial_state
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_customizer import customized
from temporal_plans.domain.recovery import launchable_tasks
from temporal_plans.domain.removal import (
    decommission_plan,
    to_decommission,
    uninstall_plan,
    unneeded,
)
from temporal_plans.domain.rollout import rolled_out
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.plan import PlanView
from temporal_plans.messages.service import ChangeView, ServiceInput
from temporal_plans.workflows.registry import Registry
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_tasks import ServiceTasks
from temporal_plans.workflows.views import PlanViewer


class ServiceChanges:
    """Reads configurations and task records; ``take_effect`` and ``relabel`` change records."""

    def __init__(
        self,
        name: str,
        configs: ServiceConfigs,
        tasks: ServiceTasks,
        registry: Registry,
        problem: Callable[[str, str], None],
    ) -> None:
        """``problem`` takes what developers' code did wrong."""
        self._name = name
        self._problem = problem
        self._configs = configs
        self._tasks = tasks
        self._registry = registry

    # --- plans ---

    def plans(self, configuration: Configuration, *, deployed_once: bool) -> dict[str, PlanSpec]:
        """The plans of a configuration by name, ``deploy`` first. Raises SpecError."""
        return plans_of(
            configuration.spec,
            configuration.plans,
            deployed_once=deployed_once,
            customizers=self._registry.plan_customizers,
        )

    def initial(self, plan: PlanSpec, former: Former | None = None) -> PlanState:
        """Where a deployment of the target begins: what is there already is not done again."""
        self.relabel()
        return initial_state(
            plan, self._configs.target, self._tasks.records, former, now=workflow.now()
        )

    def decommission(self) -> PlanSpec | None:
        """The plan that takes away what the target no longer has; None when that is nothing."""
        spec = self._configs.target.spec
        plan = decommission_plan(spec, self._tasks.records, self._tasks.reservations)
        return None if plan is None else self._customized(plan)

    def uninstall(self) -> PlanSpec:
        """The plan that takes all away."""
        spec = self._configs.target.spec
        plan = uninstall_plan(spec, self._tasks.records, self._tasks.reservations)
        return self._customized(plan)

    def _customized(self, plan: PlanSpec) -> PlanSpec:
        """As developers have it. Nobody could check that before; one that fails changes nothing,
        for a service has to be able to go."""
        try:
            return customized(plan, self._configs.target.spec, self._registry.plan_customizers)
        except SpecError as error:
            self._problem(plan.name, f"it runs as it was generated: {error}")
            return plan

    # --- a new configuration ---

    def relabel(self) -> None:
        """Tasks whose pod did not change have the target's configuration (reference 5.8)."""
        specs, target = self._configs.specs, self._configs.target.id
        self._tasks.records = relabelled(self._tasks.records, specs, target)

    def take_effect(self, plans: Sequence[PlanSpec]) -> list[TaskRecord]:
        """The target has just become another. Live tasks that no plan has any more are to be
        killed (reference 4.4), those of pods that must go are marked. What was killed so is for a
        plan to launch when one has it again; recovery would take its pod along."""
        self.relabel()
        going = set(self._going())
        launchable = launchable_tasks(plans, self._tasks.records)
        for name, record in list(self._tasks.records.items()):
            off = name not in launchable
            if off != record.off and (off or record.live):
                self._tasks.records[name] = record.but(off=off)
            if (record.pod, record.index) in going:
                self._tasks.overrides[name] = GoalOverride.DECOMMISSIONED
            elif self._tasks.overrides.get(name) is GoalOverride.DECOMMISSIONED:
                del self._tasks.overrides[name]
        records = unneeded(self._tasks.records, plans)
        return [record for record in records if (record.pod, record.index) not in going]

    def is_going(self, pod: str, index: int) -> bool:
        """Whether the target has no such pod instance any more."""
        wanted = {one.type: one.count for one in self._configs.target.spec.pods}
        return index >= wanted.get(pod, 0)

    def _going(self) -> Sequence[tuple[str, int]]:
        spec = self._configs.target.spec
        return to_decommission(spec, self._tasks.records, self._tasks.reservations)

    # --- what would be ---

    def changes(self, input: ServiceInput) -> tuple[PodChange, ...]:
        """What becomes of every pod."""
        before = self._configs.target.spec
        return pod_changes(before, input.spec, self._tasks.records, self._configs.specs)

    def preview(self, input: ServiceInput, *, deployed_once: bool) -> ChangeView:
        """What deploying this would change, and the plans as they would begin."""
        target = self._configs.target
        changes = self.changes(input)
        found = problems(
            target.spec,
            input.spec,
            input.plans,
            input.rollout,
            deployed_once=deployed_once,
            validators=self._registry.config_validators,
            customizers=self._registry.plan_customizers,
        )
        if found:
            return ChangeView(pods=changes, problems=found)
        wanted = Configuration(
            id="preview", number=target.number + 1, spec=input.spec, plans=input.plans
        )
        if (input.spec, input.plans) == (target.spec, target.plans):
            wanted = target
        return self._preview(wanted, input, changes, deployed_once=deployed_once)

    def _preview(
        self,
        wanted: Configuration,
        input: ServiceInput,
        changes: tuple[PodChange, ...],
        *,
        deployed_once: bool,
    ) -> ChangeView:
        specs = {**self._configs.specs, wanted.id: wanted.spec}
        records = relabelled(self._tasks.records, specs, wanted.id)
        plan = rolled_out(self.plans(wanted, deployed_once=deployed_once)[DEPLOY], input.rollout)
        removal = decommission_plan(wanted.spec, records, self._tasks.reservations)
        return ChangeView(
            pods=changes,
            deploy=self._view(plan, initial_state(plan, wanted, records)),
            decommission=self._view(removal, PlanState()) if removal else None,
        )

    def _view(self, plan: PlanSpec, state: PlanState) -> PlanView:
        board = PlanBoard(plan, state, strategies=self._registry.all_strategies)
        viewer = PlanViewer(f"{self._name}/{plan.name}")
        return viewer.plan(board, service=self._name, arguments={}, started=None)
