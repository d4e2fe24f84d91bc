"""The plans that an environment has issued and carries out itself, on its own server."""

from collections.abc import Mapping
from typing import Any, Protocol

from temporalio import workflow

from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.messages.fleets.names import fleet_plan_id
from temporal_plans.messages.fleets.plans import ChangeOrder, IssuedPlan, PlanOutcome
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.plan_work import PlanWork
from temporal_plans.workflows.fleets.work_by_key import Loop


class HasState(Loop, Protocol):
    """The workflow: its state, which changes while activities run."""

    state: EnvironmentState


class Issues(PlanWork):
    """The work on issued plans that no spoke carries out. Keys are names of entities."""

    def __init__(self, owner: HasState) -> None:
        super().__init__(owner)
        self._owner = owner

    @property
    def _state(self) -> EnvironmentState:
        return self._owner.state

    def _put(self, state: EnvironmentState) -> None:
        self._owner.state = state
        self._owner.changed()

    def plans(self) -> Mapping[str, IssuedPlan]:
        return {name: plan for name, plan in self._state.issued.items() if not plan.spoke}

    def entity(self, key: str) -> str:
        return key

    def plan_id(self, key: str, number: int) -> str:
        return fleet_plan_id(self._state.environment.name, key, number)

    def order(self, key: str) -> ChangeOrder | None:
        info = workflow.info()
        return book.order_of(self._state, key, info.workflow_id, info.first_execution_run_id)

    def mark(self, key: str, **changes: Any) -> None:
        self._put(book.with_issued(self._state, key, **changes))

    def begun(self, key: str) -> None:
        self._put(book.plan_begun(self._state, key))

    def forget(self, key: str) -> None:
        self._put(book.without_issued(self._state, key))

    def lose(self, key: str, why: str) -> None:
        self._put(book.plan_lost(self._state, key, why))

    def end(self, key: str, outcome: PlanOutcome, status: EndStatus) -> None:
        now, changed, errors = workflow.now(), outcome.changed, outcome.errors[:20]
        state = book.plan_ended(self._state, key, status, now, changed=changed, errors=errors)
        self._put(state)
