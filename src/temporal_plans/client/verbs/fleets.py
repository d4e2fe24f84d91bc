"""Verbs for fleets: environments, products, and the plans that environments issue.

The values of fleets are imported where a verb needs them: they are a third of all values, and the
commands for services would wait for them at every start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsEnding,
)
from temporal_plans.client.verbs.base import LIST_LIMIT, RUNNING, Model, Verbs
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.plans import CommandLog

if TYPE_CHECKING:
    from temporal_plans.domain.fleets.entity_graph import EntityGraph
    from temporal_plans.domain.fleets.explanation import Explanation
    from temporal_plans.messages.fleets.change_requests import (
        ApproveChange,
        ChangeRequests,
        HoldChange,
        RejectChange,
    )
    from temporal_plans.messages.fleets.commands import CancelPlans, FleetCommand, ResolvePlan
    from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
    from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
    from temporal_plans.messages.fleets.environments import EnvironmentApply
    from temporal_plans.messages.fleets.plans import PlanRows
    from temporal_plans.messages.fleets.product_views import ProductExport, ProductView
    from temporal_plans.messages.fleets.products import (
        ProductApply,
        Publish,
        RecallRelease,
        RevertRecall,
    )
    from temporal_plans.messages.fleets.reports import ReportFacts
    from temporal_plans.messages.fleets.requests import DeleteRequest
    from temporal_plans.messages.fleets.stops import (
        OverrideWindows,
        RemoveOverride,
        Suppress,
        Unsuppress,
    )

    EnvironmentRequest = (
        Suppress
        | Unsuppress
        | OverrideWindows
        | RemoveOverride
        | CancelPlans
        | ResolvePlan
        | FleetCommand
        | ReportFacts
        | DeleteRequest
        | ApproveChange
        | RejectChange
        | HoldChange
    )

_UPDATES: Mapping[str, str] = {
    "Suppress": "suppress",
    "Unsuppress": "unsuppress",
    "OverrideWindows": "override",
    "RemoveOverride": "remove_override",
    "CancelPlans": "cancel",
    "ResolvePlan": "resolve",
    "FleetCommand": "command",
    "ReportFacts": "report",
    "DeleteRequest": "delete",
    "ApproveChange": "approve",
    "RejectChange": "reject",
    "HoldChange": "hold",
}
"""The updates of an environment by the types of their arguments."""


_TRIES = 5
_ENDING_SECONDS = 1.0
"""How often, and after which pause, one that is being deleted is asked again."""


_LEAVES_WITHIN = timedelta(seconds=10)


class FleetVerbs(Verbs):
    """The verbs for fleets. They raise Refused: with ``not-found`` for an environment or a product
    that there is not, else with its reason."""

    # --- environments ---

    async def environments(self) -> list[str]:
        """Return the names of all environments. A new one may take a moment to be listed."""
        return await self._names("Environment", "environment/")

    async def apply_environment(self, request: EnvironmentApply) -> Outcome:
        """Create an environment, or change it to what its document says."""
        from temporal_plans.messages.fleets.environments import EnvironmentInput
        from temporal_plans.messages.fleets.names import environment_id

        name = request.environment.name
        input = EnvironmentInput(name=name)
        return await self._start("Environment", environment_id(name), input, "apply", request)

    async def ask_environment(self, name: str, request: EnvironmentRequest) -> Outcome:
        """Give a request to an environment: suppress, cancel, resolve and so on. One that is
        deleted has left its products at the end, unless one does not answer."""
        from temporal_plans.messages.fleets.names import environment_id

        update = _UPDATES[type(request).__name__]
        outcome = await self._update_fleet("environment", name, update, request)
        if update == "delete":
            await self._has_ended(environment_id(name), _LEAVES_WITHIN)
        return outcome

    async def environment(self, name: str) -> EnvironmentStatus:
        """Return all entities of an environment with what holds them back."""
        from temporal_plans.messages.fleets.environment_views import EnvironmentStatus

        return await self._query_fleet("environment", name, "status", EnvironmentStatus)

    async def fleet(self, *names: str) -> dict[str, EnvironmentStatus | PlansError]:
        """Return the status of some environments, or of all: by name, or for each that does not
        answer its error. Of all, those that have just ended are still listed, and left out."""

        async def answered(name: str) -> EnvironmentStatus | PlansError:
            try:
                return await self.environment(name)
            except PlansError as error:
                return error

        wanted = names or await self.environments()
        answers = zip(wanted, await gather_bounded(map(answered, wanted)), strict=True)
        return {name: answer for name, answer in answers if names or not _is_absent(answer)}

    async def environment_document(self, name: str) -> EnvironmentDeclaration:
        """Return an environment as its document says."""
        from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration

        return await self._query_fleet("environment", name, "export", EnvironmentDeclaration)

    async def change_requests(self, name: str) -> ChangeRequests:
        """Return the change requests of an environment, newest first."""
        from temporal_plans.messages.fleets.change_requests import ChangeRequests

        return await self._query_fleet("environment", name, "requests", ChangeRequests)

    async def environment_log(self, name: str) -> CommandLog:
        """Return the requests that an environment was given."""
        return await self._query_fleet("environment", name, "log", CommandLog)

    async def explain_entity(self, environment: str, entity: str, at: datetime) -> Explanation:
        """Return what is decided of an entity at a time, with every constraint's verdict about
        every release of its channel."""
        from temporal_plans.domain.fleets.explanation import Explanation
        from temporal_plans.messages.fleets.environment_views import ExplainEntity

        query = ExplainEntity(entity=entity, at=at)
        return await self._query_fleet(
            "environment", environment, "explanation", Explanation, query
        )

    async def fleet_graph(self, environment: str) -> EntityGraph:
        """Return the entities of an environment with the dependencies between them."""
        from temporal_plans.domain.fleets.entity_graph import EntityGraph

        return await self._query_fleet("environment", environment, "graph", EntityGraph)

    async def fleet_plans(self, environment: str, entity: str = "") -> PlanRows:
        """Return the plans of an environment, or of one entity, newest first."""
        from temporal_plans.messages.fleets.plans import PlanRows, PlansQuery

        query = PlansQuery(entity=entity)
        return await self._query_fleet("environment", environment, "plans", PlanRows, query)

    # --- products ---

    async def products(self) -> list[str]:
        """Return the names of all products. A new one may take a moment to be listed."""
        return await self._names("Product", "product/")

    async def apply_product(self, request: ProductApply) -> Outcome:
        """Create a product, or change it to what its document says."""
        from temporal_plans.messages.fleets.names import product_id
        from temporal_plans.messages.fleets.products import ProductInput

        name = request.product.name
        return await self._start(
            "Product", product_id(name), ProductInput(name=name), "apply", request
        )

    async def publish(
        self, product: str, request: Publish, contents: Sequence[bytes] = ()
    ) -> Outcome:
        """Publish a release of a product, which begins with its first release. ``contents`` are the
        archives of its package, which are stored first."""
        from temporal_plans.messages.fleets.names import product_id
        from temporal_plans.messages.fleets.products import ProductInput

        for data in contents:
            await self._gateway.put_content(data)
        input = ProductInput(name=product)
        return await self._start("Product", product_id(product), input, "publish", request)

    async def releases(self, product: str) -> ProductView:
        """Return the releases and recalls of a product."""
        from temporal_plans.messages.fleets.product_views import ProductView

        return await self._query_fleet("product", product, "status", ProductView)

    async def product_document(self, product: str) -> ProductExport:
        """Return a product as its document says."""
        from temporal_plans.messages.fleets.product_views import ProductExport

        return await self._query_fleet("product", product, "export", ProductExport)

    async def product_log(self, product: str) -> CommandLog:
        """Return the requests that a product was given."""
        return await self._query_fleet("product", product, "log", CommandLog)

    async def recall(self, product: str, request: RecallRelease) -> Outcome:
        """Recall releases, or edit a recall."""
        return await self._update_fleet("product", product, "recall", request)

    async def revert_recall(self, product: str, request: RevertRecall) -> Outcome:
        """Revert a recall."""
        return await self._update_fleet("product", product, "revert_recall", request)

    async def delete_product(self, product: str, request: DeleteRequest) -> Outcome:
        """Forget a product and its releases."""
        return await self._update_fleet("product", product, "delete", request)

    # --- details ---

    async def _names(self, kind: str, prefix: str) -> list[str]:
        query = f"WorkflowType = '{kind}' AND {RUNNING}"
        return sorted(
            run.id.removeprefix(prefix) for run in await self._gateway.list(query, LIST_LIMIT)
        )

    async def _start(
        self, kind: str, workflow_id: str, input: BaseModel, update: str, request: BaseModel
    ) -> Outcome:
        for _ in range(_TRIES):  # one of this name may end meanwhile
            try:
                return await self._gateway.start_and_update(
                    kind, workflow_id, input, update, Outcome, request=request
                )
            except (NoSuchWorkflow, WorkflowIsClosed, EndedBeforeAnswer):
                continue
            except WorkflowIsEnding:
                await asyncio.sleep(_ENDING_SECONDS)
        problem = f"{workflow_id} ended before it answered"
        raise Refused.of(Code.UNAVAILABLE, problem, fix="retry")

    async def _update_fleet(self, noun: str, name: str, update: str, request: BaseModel) -> Outcome:
        try:
            return await self._gateway.update(f"{noun}/{name}", update, request, Outcome)
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise await self._not_found(noun, name) from None
        except WorkflowIsEnding:
            text, fix = "is being deleted", "ask again when it is gone"
            raise Refused.of(Code.ENDING, text, field=noun, value=name, fix=fix) from None
        except EndedBeforeAnswer:
            text = f"{noun} {name} ended before it answered"
            return Outcome(result=Result.UNDER_WAY, message=text)

    async def _query_fleet(
        self,
        noun: str,
        name: str,
        query: str,
        result: type[Model],
        argument: BaseModel | None = None,
    ) -> Model:
        try:
            return await self._gateway.query(
                f"{noun}/{name}", query, result, argument, open_only=True
            )
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise await self._not_found(noun, name) from None

    async def _not_found(self, noun: str, name: str) -> Refused:
        known = await (self.environments() if noun == "environment" else self.products())
        fix = suggestion(name, known) or f"apply a document of the {noun} first"
        return Refused.of(
            Code.NOT_FOUND, f"there is no such {noun}", field=noun, value=name, fix=fix
        )


def _is_absent(answer: EnvironmentStatus | PlansError) -> bool:
    return isinstance(answer, Refused) and answer.refusal.code == Code.NOT_FOUND
