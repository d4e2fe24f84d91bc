"""Activities of an Environment that start its plans, read how they ended, and report to it."""

import asyncio
from collections.abc import Mapping

from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.fleets.composition import changes, plan_input
from temporal_plans.activities.fleets.kinds.record import EntityChange, EntityKind
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.mechanics.failure_text import failure_text
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.activities.owners.plans import PlanActivities
from temporal_plans.domain.fleets.plans import EndStatus
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.plans import ChangeOrder, PlanOutcome, PlanOutcomeQuery
from temporal_plans.messages.fleets.reports import ReportEntity
from temporal_plans.messages.owners import PlanStart
from temporal_plans.messages.plans import PLAN_RUN, PLAN_STARTER, PlanInput, PlanResult

_ENDING_SECONDS = 20
_ERRORS_LIMIT = 20
_NEVER_BEGAN = "InvalidPlan"
"""The failure type of a plan that can't run: none of its steps began."""


class FleetPlanActivities:
    """``kinds`` are the kinds of entities by name."""

    def __init__(self, client: Client, kinds: Mapping[str, EntityKind], releases: Releases) -> None:
        self._client = client
        self._releases = releases
        self._kinds = kinds
        self._plans = PlanActivities(client)

    @activity.defn(name="issue_plan")
    async def issue_plan(self, order: ChangeOrder) -> None:
        """Start the plan of an order, once for its number. Raises ApplicationError (Refused, not
        retryable) when it can't be carried out."""
        async with heartbeats():
            kind = self._kinds.get(order.entity_kind)
            if kind is None:
                raise refusal_error(_unknown_kind(order.entity_kind, self._kinds))
            target = await self._files(order, order.to.version)
            current = await self._files(order, order.before.version)
            input = _planned(kind, EntityChange(order, target, current))
            start = PlanStart(
                workflow_id=order.plan_id,
                run=order.number,
                starter=order.starter,
                at=order.at,
                input=input,
            )
        await self._plans.start_plan(start)

    async def _files(self, order: ChangeOrder, version: str | None) -> ReleasePayload:
        if version is not None and (digest := order.contents.get(version)) is not None:
            return await self._releases.files(digest)
        return await self._releases.payload(order.product, version)

    @activity.defn(name="plan_outcome")
    async def plan_outcome(self, query: PlanOutcomeQuery) -> PlanOutcome:
        """Return how a plan ended. A plan that was terminated, or that the server does not know any
        more, has no status: what it did is unknown."""
        run = await described(self._client, query.plan_id)
        if run is None:
            return PlanOutcome(lost="the server does not know the plan any more")
        memo = await run.memo()
        if (memo.get(PLAN_RUN), memo.get(PLAN_STARTER)) != (query.number, query.starter):
            return PlanOutcome(lost="another plan has its id")
        handle = self._client.get_workflow_handle(query.plan_id, result_type=PlanResult)
        try:
            async with heartbeats():  # its last report comes before its end
                result: PlanResult = await asyncio.wait_for(handle.result(), _ENDING_SECONDS)
        except TimeoutError:
            return PlanOutcome(open=True)
        except WorkflowFailureError as error:
            cause = error.cause
            text = shortened(failure_text(cause), 1000)
            if isinstance(cause, ApplicationError) and cause.type == _NEVER_BEGAN:
                return PlanOutcome(status=EndStatus.FAILED, errors=(text,))
            return PlanOutcome(lost=f"its workflow ended without a result: {text}"[:1000])
        return _outcome(result)

    @activity.defn(name="report_entity")
    async def report_entity(self, report: ReportEntity) -> None:
        """Tell an environment, or its spoke, what a plan of its entity has reached."""
        owner = report.owner or environment_id(report.environment)
        handle = self._client.get_workflow_handle(owner)
        try:
            async with heartbeats():
                await handle.signal("reported", report.report)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # it was deleted meanwhile
                raise


def _planned(kind: EntityKind, change: EntityChange) -> PlanInput:
    """Return the plan of a change. Raises ApplicationError (Refused, not retryable), also for a
    developer's kind that fails: a retry would fail as well."""
    try:
        return plan_input(change.order, kind.plan(change))
    except RefusedError as error:
        raise refusal_error(error.refusal) from None
    except Exception as error:
        text = f"the kind {kind.name} failed: {type(error).__name__}: {error}"
        raise refusal_error(Refusal.of(Code.FAILED, shortened(text, 1000))) from error


def _outcome(result: PlanResult) -> PlanOutcome:
    """Return the outcome by the last state of the steps. A plan that an environment ended is
    CANCELLED when no step had failed; the environment knows why it ended it."""
    if result.status is Status.COMPLETE:
        return PlanOutcome(status=EndStatus.SUCCEEDED, changed=True)
    errors: list[str] = []
    changed = False
    for phase in result.view.phases:
        for step in phase.steps:
            begun = bool(step.started or step.errors or step.attempt)
            changed |= changes(phase.name) and (begun or step.status is not Status.PENDING)
            if step.status is Status.ERROR:
                text = "; ".join(step.errors) or step.message or "failed"
                errors.append(shortened(f"{phase.name}/{step.name}: {text}", 1000))
    status = EndStatus.FAILED if errors else EndStatus.CANCELLED
    return PlanOutcome(status=status, errors=tuple(errors[:_ERRORS_LIMIT]), changed=changed)


def _unknown_kind(name: str, known: Mapping[str, EntityKind]) -> Refusal:
    reason = Reason(
        field="kind",
        problem="is no kind of entity that this worker knows",
        value=name,
        fix=suggestion(name, known),
    )
    return Refusal(code=Code.INVALID, reasons=(reason,))
