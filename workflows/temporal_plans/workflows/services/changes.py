"""A service's plans, and the effect of a new configuration on them (behaviour 5.4-5.8)."""

from collections.abc import Callable, Sequence

from temporalio import workflow

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.owners.rollout import rolled_out
from temporal_plans.domain.plans.board import PlanBoard, PlanState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.comparison import pod_changes, relabelled, value_fields
from temporal_plans.domain.services.configuration import Configuration, specs_of
from temporal_plans.domain.services.deployable import option_problems, plans_of, problems
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.initial_state import Former, initial_state
from temporal_plans.domain.services.launchable import launchable_tasks
from temporal_plans.domain.services.plan_comparison import plan_changes, settings_changes
from temporal_plans.domain.services.plan_customizer import customized
from temporal_plans.domain.services.plan_names import DEPLOY
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.removal import (
    decommission_plan,
    to_decommission,
    uninstall_plan,
    unneeded,
)
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.messages.plan_views import PlanView, PlanViewer
from temporal_plans.messages.services import ChangeView, ServiceInput
from temporal_plans.workflows.plans.registry import Registry
from temporal_plans.workflows.services.rules import ServiceRules


class ServiceChanges:
    """Compares configurations with task records; ``take_effect`` and ``relabel`` change records."""

    def __init__(
        self,
        name: str,
        configs: ConfigurationBook[Configuration],
        tasks: TaskBook,
        registry: Registry,
        rules: ServiceRules,
        problem: Callable[[str, str, str], None],
    ) -> None:
        """``problem`` records an error of developers' code, with its traceback."""
        self._name = name
        self._problem = problem
        self._configs = configs
        self._tasks = tasks
        self._registry = registry
        self._rules = rules

    # --- plans ---

    def plans(self, configuration: Configuration, *, deployed_once: bool) -> dict[str, PlanSpec]:
        """Return the plans of a configuration by name, ``deploy`` first. Raises SpecError."""
        return plans_of(
            configuration.spec,
            configuration.plans,
            deployed_once=deployed_once,
            customizers=self._rules.plan_customizers,
        )

    def initial(self, plan: PlanSpec, former: Former | None = None) -> PlanState:
        """Return the initial state of a deployment of the target: done work is not repeated."""
        self.relabel()
        return initial_state(
            plan, self._configs.target, self._tasks.records, former, now=workflow.now()
        )

    def decommission(self) -> PlanSpec | None:
        """Return the plan that removes pods that the target no longer has; None without any."""
        spec = self._configs.target.spec
        plan = decommission_plan(spec, self._tasks.records, self._tasks.reservations)
        return None if plan is None else self._customized(plan)

    def uninstall(self) -> PlanSpec:
        """Return the plan that removes everything."""
        spec = self._configs.target.spec
        plan = uninstall_plan(spec, self._tasks.records, self._tasks.reservations)
        return self._customized(plan)

    def _customized(self, plan: PlanSpec) -> PlanSpec:
        """Return the plan as developers' customizers change it. These plans can't be checked in
        advance: when a customizer fails the plan stays as generated, so that removal always works.
        """
        try:
            return customized(plan, self._configs.target.spec, self._rules.plan_customizers)
        except SpecError as error:
            text = f"a customizer failed, the generated plan is used: {error}"
            trace = "\n".join(reason.trace for reason in error.reasons if reason.trace)
            self._problem(plan.name, text, trace)
            return plan

    # --- a new configuration ---

    def relabel(self) -> None:
        """Set the configuration of tasks whose pod is unchanged to the target (behaviour 5.8)."""
        specs, target = specs_of(self._configs), self._configs.target.id
        self._tasks.records = relabelled(self._tasks.records, specs, target)

    def take_effect(self, plans: Sequence[PlanSpec]) -> list[TaskRecord]:
        """Update the records for a new target. Return the live tasks to kill: no plan contains them
        any more (behaviour 4.4).

        Tasks of pods to decommission are marked. A task killed here is launched again by a plan
        that contains it, not by recovery, which would relaunch its whole pod.
        """
        self.relabel()
        removed = set(self._to_decommission())
        launchable = launchable_tasks(plans, self._tasks.records)
        for name, record in list(self._tasks.records.items()):
            retired = name not in launchable
            if retired != record.retired and (retired or record.live):
                self._tasks.records[name] = record.but(retired=retired)
            if (record.pod, record.index) in removed:
                self._tasks.overrides[name] = GoalOverride.DECOMMISSIONED
            elif self._tasks.overrides.get(name) is GoalOverride.DECOMMISSIONED:
                del self._tasks.overrides[name]
        records = unneeded(self._tasks.records, plans)
        return [record for record in records if (record.pod, record.index) not in removed]

    def is_removed(self, pod: str, index: int) -> bool:
        """Whether the target no longer has this pod instance."""
        counts = {spec.type: spec.count for spec in self._configs.target.spec.pods}
        return index >= counts.get(pod, 0)

    def _to_decommission(self) -> Sequence[tuple[str, int]]:
        spec = self._configs.target.spec
        return to_decommission(spec, self._tasks.records, self._tasks.reservations)

    # --- preview ---

    def changes(self, input: ServiceInput, before: ServiceInput) -> ChangeView:
        """Return the changes of pods, plans and settings. ``before`` has the settings in force."""
        target, specs = self._configs.target, specs_of(self._configs)
        return ChangeView(
            pods=pod_changes(target.spec, input.spec, self._tasks.records, specs),
            plans=plan_changes(target.spec, target.plans, input.spec, input.plans),
            settings=(
                *settings_changes(target.spec, input.spec),
                *value_fields(before.backoff, input.backoff, "backoff"),
                *value_fields(before.recovery, input.recovery, "recovery"),
            ),
        )

    def preview(
        self, input: ServiceInput, before: ServiceInput, *, deployed_once: bool
    ) -> ChangeView:
        """Return what a deployment would change, and the plans in their initial state. ``before``
        has the settings in force."""
        target = self._configs.target
        changes = self.changes(input, before)
        found = problems(
            target.spec,
            input.spec,
            input.plans,
            deployed_once=deployed_once,
            validators=self._rules.config_validators,
            customizers=self._rules.plan_customizers,
        ) or option_problems(
            input.spec,
            input.plans,
            input.rollout,
            deployed_once=deployed_once,
            customizers=self._rules.plan_customizers,
        )
        if found:
            return changes.but(problems=found)
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
        changes: ChangeView,
        *,
        deployed_once: bool,
    ) -> ChangeView:
        specs = {**specs_of(self._configs), wanted.id: wanted.spec}
        records = relabelled(self._tasks.records, specs, wanted.id)
        plan = rolled_out(self.plans(wanted, deployed_once=deployed_once)[DEPLOY], input.rollout)
        removal = decommission_plan(wanted.spec, records, self._tasks.reservations)
        return changes.but(
            deploy=self._view(plan, initial_state(plan, wanted, records)),
            decommission=self._view(removal, PlanState()) if removal else None,
        )

    def _view(self, plan: PlanSpec, state: PlanState) -> PlanView:
        board = PlanBoard(plan, state, strategies=self._registry.all_strategies)
        viewer = PlanViewer(f"{self._name}/{plan.name}")
        return viewer.plan(board, service=self._name, arguments={}, started=None)
