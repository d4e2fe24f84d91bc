"""Changes of an environment that need an approval: asked for, approved or not, carried out."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import FailureError

from temporal_plans.domain.fleets.approvals import (
    Approvals,
    ChangeKind,
    approver_refusal,
    judge_refusal,
)
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.standing import Pass, passed
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.model import WITH_DEFAULTS
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.loading.fleets.snapshots import revision
from temporal_plans.messages.fleets.change_requests import (
    Approval,
    ApproveChange,
    ChangeRequest,
    ChangeRequests,
    HoldChange,
    PlannedChange,
    RejectChange,
    RequestStatus,
)
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import (
    DecideEnvironment,
    EnvironmentInput,
    EnvironmentState,
)
from temporal_plans.messages.fleets.requests import FleetRequest
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import Audited, ask

OPEN_LIMIT = 50
"""Change requests that wait at a time."""
CLOSED_KEPT = 100
"""Change requests that are over, and listed."""
PLANNED_LIMIT = 100
"""Entities that a change request lists."""
CLOSED_PLANNED = 10
"""Entities that one lists that is over."""

CarryOut = Callable[[ChangeRequest], Awaitable[Outcome]]


class ChangeRequestVerbs(Audited):
    """A base class of the Environment workflow."""

    input: EnvironmentInput
    state: EnvironmentState
    declared: bool

    def _carriers(self) -> Mapping[str, CarryOut]:
        """Return what carries out the changes that may need an approval, by their verbs."""
        raise NotImplementedError

    @property
    def _rules(self) -> Approvals:
        return self.state.declaration.settings.approvals

    # --- asking ---

    async def _asked(
        self,
        verb: str,
        request: FleetRequest,
        kinds: tuple[ChangeKind, ...],
        after: Callable[[], EnvironmentState],
        subject: str,
    ) -> Outcome | None:
        """Make a change request of a change that needs an approval, and return the outcome; None
        when it needs none. ``after`` gives the state that it leads to."""
        needs = self._rules.holds(kinds) if self.declared else ()
        if not needs:
            return None
        if sum(one.open for one in self.state.requests) >= OPEN_LIMIT:
            text = f"{OPEN_LIMIT} change requests wait already"
            refusal = Refusal.of(Code.INVALID, text, fix="approve or reject some")
            self.refuse_late(verb, request, refusal)
        base = _digest(self.state.declaration)
        planned = await self._planned(after())
        self.refuse_late(verb, request, None)  # it may be deleted meanwhile
        number = self.state.numbers + 1
        now = workflow.now()
        one = ChangeRequest(
            id=f"change-{number}",
            subject=shortened(subject, 1000),
            kinds=needs,
            by=request.by,
            reason=request.reason,
            at=now,
            expires_at=now + self._rules.expire_after,
            verb=verb,
            wanted=request.model_dump(mode="json"),
            base=base,
            needed=self._rules.needed,
            planned=planned[:PLANNED_LIMIT],
            others=max(len(planned) - PLANNED_LIMIT, 0),
        )
        self.state = self.state.but(numbers=number, requests=(*self.state.requests, one))
        approvals = f"{one.needed} approval{'s' if one.needed > 1 else ''}"
        why = ", ".join(one.kinds)
        text = f"change request {one.id} waits for {approvals}, because of {why}"
        return self.recorded(verb, request, Outcome(result=Result.UNDER_WAY, message=text))

    async def _planned(self, state: EnvironmentState) -> tuple[PlannedChange, ...]:
        """Return how entities would stand that would stand otherwise. A decision that fails says
        nothing: the change itself may be what cures it."""
        try:
            done = await self._dry(state, workflow.now())
        except Exception as error:  # a retry of the workflow task would fail as well
            self.record_problem("preview", f"{type(error).__name__}: {error}"[:500])
            return ()
        return tuple(
            PlannedChange(entity=name, standing=done.standings[name])
            for name in sorted(done.standings)
        )

    async def _dry(self, state: EnvironmentState, now: datetime) -> Pass:
        snapshot, former = book.snapshot_of(state), self.state.standings
        if len(snapshot.environment.entities) <= self.input.workflow_limit:
            return passed(snapshot, decide(snapshot, now), former)
        request = DecideEnvironment(
            environment=snapshot.environment,
            products=snapshot.products,
            standings=former,
            now=now,
        )
        return await ask("decide_environment", request, Pass)

    # --- judging ---

    @workflow.update(name="approve", description="Approve a change request.")
    async def approve(self, request: ApproveChange) -> Outcome:
        one = self._request(request.id)
        approval = Approval(by=request.by, reason=request.reason, at=workflow.now())
        one = one.but(approvals=(*one.approvals, approval))
        enough = len(one.approvals) >= one.needed
        if enough:
            one = one.but(status=RequestStatus.APPROVED)
        self._put_request(one)
        verb = f"approve {one.id}"
        if not enough:
            left = one.needed - len(one.approvals)
            return self.done(verb, request, f"{one.id} is approved, and needs {left} more")
        if one.held:
            return self.done(verb, request, f"{one.id} is approved, and held")
        self.done(verb, request, f"{one.id} is approved")
        return await self._carry_out(one)

    @approve.validator
    def _check_approve(self, request: ApproveChange) -> None:
        one = self._request(request.id)
        if one.status is RequestStatus.APPROVED:
            reason = Reason(field="id", problem="is approved", value=one.id, fix="release it")
            self.refuse(Refusal(code=Code.NOT_APPLICABLE, reasons=(reason,)))
        already = tuple(approval.by for approval in one.approvals)
        self.refuse(approver_refusal(self._rules, request.by, one.by, already))
        self.refuse(self._outdated(one))

    @workflow.update(name="reject", description="Reject a change request, or withdraw one's own.")
    async def reject(self, request: RejectChange) -> Outcome:
        one = self._request(request.id)
        own = bool(request.by) and request.by == one.by
        status = RequestStatus.WITHDRAWN if own else RequestStatus.REJECTED
        self._close(one, status, request.by, request.reason)
        return self.done(f"reject {one.id}", request, f"{one.id} is {status}")

    @reject.validator
    def _check_reject(self, request: RejectChange) -> None:
        one = self._request(request.id)
        if request.by and request.by == one.by:
            return
        self.refuse(judge_refusal(self._rules, request.by))
        if not request.reason.strip():
            self.refuse(Refusal.of(Code.INVALID, "is missing", field="reason", fix="say why"))

    @workflow.update(name="hold", description="Hold a change request, or let it go on.")
    async def hold(self, request: HoldChange) -> Outcome:
        one = self._request(request.id).but(held=request.held)
        self._put_request(one)
        verb = f"{'hold' if request.held else 'release'} {one.id}"
        outcome = self.done(verb, request, f"{one.id} is {'' if request.held else 'not '}held")
        if request.held or one.status is not RequestStatus.APPROVED:
            return outcome
        return await self._carry_out(one)

    @hold.validator
    def _check_hold(self, request: HoldChange) -> None:
        one = self._request(request.id)
        if not (request.by and request.by == one.by):
            self.refuse(judge_refusal(self._rules, request.by))
        if not request.held:
            self.refuse(self._outdated(one))

    def expire_requests(self, now: datetime) -> datetime | None:
        """Close the change requests that have waited for too long. Return when the next one has."""
        for one in self.state.requests:
            if one.open and one.expires_at <= now:
                self._close(one, RequestStatus.EXPIRED, "", "it was not approved in time")
                text = f"{one.id} is expired"
                outcome = Outcome(result=Result.DONE, message=text)
                self.log.command(f"expire {one.id}", Command(), outcome, via="time", now=now)
        return min((one.expires_at for one in self.state.requests if one.open), default=None)

    @workflow.query(name="requests", description="Its change requests, newest first.")
    def requests(self) -> ChangeRequests:
        return ChangeRequests(requests=self.state.requests[::-1])

    # --- details ---

    async def _carry_out(self, one: ChangeRequest) -> Outcome:
        """Carry out an approved change, as its author asked for it."""
        self._put_request(one.but(status=RequestStatus.APPLYING))
        try:
            outcome = await self._carriers()[one.verb](one)
        except FailureError as error:  # refused: the world is another than at the request
            self._close(one, RequestStatus.FAILED, "", shortened(str(error), 500))
            raise
        self._close(one, RequestStatus.APPLIED, "", shortened(outcome.message, 500))
        text = f"{one.id} is approved and applied: {outcome.message}"
        return outcome.but(message=text)

    def _close(self, one: ChangeRequest, status: RequestStatus, by: str, reason: str) -> None:
        closed = Approval(by=by, reason=reason, at=workflow.now())
        listed, others = one.planned[:CLOSED_PLANNED], one.planned[CLOSED_PLANNED:]
        over = one.but(planned=listed, others=one.others + len(others), wanted={})
        self._put_request(over.but(status=status, closed=closed))
        ended = [other.id for other in self.state.requests if not other.open]
        gone = set(ended[:-CLOSED_KEPT])
        kept = tuple(other for other in self.state.requests if other.id not in gone)
        self.state = self.state.but(requests=kept)

    def _put_request(self, one: ChangeRequest) -> None:
        requests = tuple(one if other.id == one.id else other for other in self.state.requests)
        self.state = self.state.but(requests=requests)
        self.changed()

    def _request(self, id: str) -> ChangeRequest:
        """Return an open request. Raises ApplicationError (Refused) for one that there is not."""
        found = {one.id: one for one in self.state.requests}
        one = found.get(id)
        if one is None:
            fix = suggestion(id, found)
            reason = Reason(field="id", problem="is not there", value=id, fix=fix)
            self.refuse(Refusal(code=Code.NOT_FOUND, reasons=(reason,)))
        assert one is not None
        if not one.open:
            reason = Reason(field="id", problem=f"is {one.status}", value=id, fix="ask again")
            self.refuse(Refusal(code=Code.NOT_APPLICABLE, reasons=(reason,)))
        return one

    def _outdated(self, one: ChangeRequest) -> Refusal | None:
        if one.verb != "apply" or one.base == _digest(self.state.declaration):
            return None
        text = "was made for an environment that was changed since"
        fix = "reject it, and apply the document again"
        reason = Reason(field="id", problem=text, value=one.id, fix=fix)
        return Refusal(code=Code.SUPERSEDED, reasons=(reason,))


def kinds_of(
    before: EnvironmentDeclaration, after: EnvironmentDeclaration
) -> tuple[ChangeKind, ...]:
    """Return what a document changes. Who may do without an approval is a setting that needs one,
    as long as there is any."""
    found: set[ChangeKind] = set()
    if before.settings != after.settings:
        found.add(ChangeKind.SETTINGS)
    if before.config != after.config:
        found.add(ChangeKind.CONFIG)
    for name in before.entities.keys() | after.entities.keys():
        old, new = before.entities.get(name), after.entities.get(name)
        if old is None or new is None or old.but(config={}) != new.but(config={}):
            found.add(ChangeKind.ENTITIES)
        elif old.config != new.config:
            found.add(ChangeKind.CONFIG)
    if before.settings.approvals != after.settings.approvals:
        found |= set(before.settings.approvals.changes)
    return tuple(sorted(found))


def _digest(declaration: EnvironmentDeclaration) -> str:
    return revision(declaration.model_dump(mode="json", context=WITH_DEFAULTS))
