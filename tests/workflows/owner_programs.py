"""The smallest owner of plans: a list of chores. It shows what a wing has to say, and no more."""

from collections.abc import Mapping

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_plans.domain.plans.plan import PlanSpec
    from temporal_plans.domain.plans.status import Status
    from temporal_plans.domain.values.model import CompactValue
    from temporal_plans.messages.owners import OwnerState, PlanBegin, PlanRecord
    from temporal_plans.messages.plans import EngineInput, OwnerContext, PlanInput, PlanReport
    from temporal_plans.workflows.mechanics.externs import require_plugin
    from temporal_plans.workflows.owners.owner import Owner

CLEAR_UP = "clear-up"


class ChoresInput(CompactValue):
    """Its plans; ``clear-up`` is what takes everything away. ``state`` is the owner's own."""

    name: str
    plans: tuple[PlanSpec, ...]
    history_limit: int = 4000
    state: OwnerState | None = None


@workflow.defn(name="Chores")
class Chores(Owner):
    """Begins every plan but ``clear-up`` once, and lets people start them again."""

    kind = "list"
    removal_plan = CLEAR_UP

    @workflow.init
    def __init__(self, input: ChoresInput) -> None:
        self._input = input
        self._specs = {plan.name: plan for plan in input.plans}
        self.init_owner(input.state or OwnerState(), priorities={})

    @workflow.run
    async def run(self, input: ChoresInput) -> str:
        require_plugin()
        if input.state is None:
            for name in self.startable:
                self.plans.begin(name, PlanBegin(what="a chore"))
        await self.run_until_uninstalled()
        return "cleared up"

    @property
    def owner_name(self) -> str:
        return self._input.name

    @property
    def startable(self) -> Mapping[str, PlanSpec]:
        return {name: spec for name, spec in self._specs.items() if name != CLEAR_UP}

    @property
    def history_limit(self) -> int:
        return self._input.history_limit

    def plan_input(self, begin: PlanBegin, record: PlanRecord) -> PlanInput:
        context = OwnerContext(
            owner=self.owner_name,
            workflow_id=workflow.info().workflow_id,
            plan=record.name,
            run=record.run,
            starter=workflow.info().first_execution_run_id,
            priority=record.priority,
        )
        spec = self._specs[record.name]
        fields = {name: getattr(spec, name) for name in PlanSpec.model_fields}
        first = (begin.first,) if begin.first else ()
        return PlanInput(**fields, engine=EngineInput(context=context, first=first))

    def plan_ended(self, report: PlanReport) -> None:
        if report.plan == CLEAR_UP:
            self.over = report.status is Status.COMPLETE

    def next_input(self, state: OwnerState) -> ChoresInput:
        return self._input.but(state=state)
