"""Decides what happens to every entity of an environment.

A pure function of the snapshot and the time: the same answer for the same inputs, in whatever order
they are listed. Each entity's best plan is worked out first; then the plans are judged in the order
of their precedence, each beside what was issued before it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from temporal_plans.domain.fleets.codes import CURED_BY_OTHERS, FleetCode
from temporal_plans.domain.fleets.constraints import CONSTRAINTS
from temporal_plans.domain.fleets.constraints.ramp import ramp_of
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.vulnerability import scans_of
from temporal_plans.domain.fleets.decisions import (
    REJECTED_LIMIT,
    Decision,
    DiscardedPlan,
    FleetDecision,
    Outcome,
    PlanView,
    Verdict,
    VerdictState,
    WaitingPlan,
)
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Connection, Snapshot
from temporal_plans.domain.fleets.judgement import Judgement, judge, rejected, verdict
from temporal_plans.domain.fleets.outlook import Outlook, outlook
from temporal_plans.domain.fleets.plans import PRECEDENCE, ActivePlan, ActiveStatus, Intent
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.targets import expired
from temporal_plans.domain.fleets.threshold import (
    next_count_change,
    threshold_change,
    with_change,
)
from temporal_plans.domain.fleets.world import World


def decide(
    given: Snapshot | World,
    now: datetime,
    *,
    constraints: Sequence[Constraint] = CONSTRAINTS,
    only: AbstractSet[str] | None = None,
) -> FleetDecision:
    """Decide at a time what happens to the entities of an environment, or only to those named.
    A world that was indexed before is not changed by it."""
    world = given if isinstance(given, World) else World(given)
    change = threshold_change(world.environment, now)
    with world.trial(with_change(world.environment.suppressions, change)):
        names = world.entities if only is None else sorted(only)
        wanted = [one for one in map(world.entities.get, names) if one is not None]
        decisions = _Round(world, now, constraints).decisions(wanted)
    ordered = tuple(decisions[name] for name in sorted(decisions))
    wakeups = [one.next_evaluation_at for one in ordered]
    return FleetDecision.model_construct(
        environment=world.environment.name,
        at=now,
        decisions=ordered,
        threshold=change,
        next_wakeup=first_time([*wakeups, next_count_change(world.environment, now)]),
    )


@dataclass(slots=True)
class _Round:
    """One pass over the entities."""

    world: World
    now: datetime
    constraints: Sequence[Constraint]
    targets: tuple[Constraint, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.targets = tuple(one for one in self.constraints if one.stage is Stage.TARGET)

    def decisions(self, entities: Sequence[Entity]) -> dict[str, Decision]:
        decided: dict[str, Decision] = {}
        waiting: list[tuple[Entity, Outlook]] = []
        for entity in entities:
            early = self._without_outlook(entity)
            if early is not None:
                decided[entity.name] = early
                continue
            view = outlook(entity, self.world, self.now, self.targets)
            if view.proposals:
                waiting.append((entity, view))
            else:
                decided[entity.name] = self._nothing_proposed(entity, view)
        for entity, view in sorted(waiting, key=self._turn):
            decided[entity.name] = self._judged(entity, view)
        return decided

    def _without_outlook(self, entity: Entity) -> Decision | None:
        """Return the decision about an entity for which nothing is proposed in any case."""
        if entity.settings is None:
            return self._decision(entity, Outcome.UNMANAGED, FleetCode.UNMANAGED)
        if entity.state.active_plan is not None:
            return self._running(entity, entity.state.active_plan)
        connected = self.world.facts.connection is Connection.CONNECTED
        if not connected and entity.state.command is None:  # a command waits for it, and is shown
            return self._decision(entity, Outcome.NO_WORK, FleetCode.NOT_CONNECTED)
        return None

    def _turn(self, item: tuple[Entity, Outlook]) -> tuple[int, int, datetime, str, str]:
        """Return the place of an entity: by the precedence of its plan, how deep its dependencies
        are, when it was proposed; in a ramp by a hash, so that no entity is always first."""
        entity, view = item
        first = view.proposals[0]
        depth = self.world.graph.depth(entity.product) if first.intent is Intent.INSTALL else 0
        previous = entity.state.proposed_plan
        since = self.now
        if previous and first.same_as(previous.kind, previous.intent, previous.to):
            since = previous.proposed_at
        order = ""
        if first.intent is Intent.UPGRADE and ramp_of(first, self.world) is not None:
            seed = f"{entity.product} {first.version} {self.world.environment.name} {entity.name}"
            order = hashlib.sha256(seed.encode()).hexdigest()
        return (PRECEDENCE[first.intent], depth, since, order, entity.name)

    def _judged(self, entity: Entity, view: Outlook) -> Decision:
        """Return the decision about proposals: the first that may be issued, with the most wanted
        one beside it when that is another."""
        first = view.proposals[0]
        judgement = judge(first, self.world, self.now, self.constraints)
        changes = [*view.changes, judgement.next_change]
        if not judgement.findings:
            plan = self._plan(first, blocked=False)
            self._issue(first)
            return self._decision(
                entity, Outcome.ISSUE, view=view, plan=plan, of=judgement, changes=changes
            )
        plan = self._plan(first, blocked=True)
        if plan.blocked_since is not None:
            changes.append(plan.blocked_since + self.world.settings.recompute_after)
        for other in view.proposals[1:]:
            second = judge(other, self.world, self.now, self.constraints)
            changes.append(second.next_change)
            if second.findings:
                continue
            self._issue(other)
            number = max(entity.state.last_number, plan.number) + 1
            return self._decision(
                entity,
                Outcome.ISSUE,
                view=view,
                plan=self._view(other, number, self.now, None),
                of=second,
                waiting=WaitingPlan(plan=plan, constraints=judgement.verdicts),
                changes=changes,
            )
        code = str(judgement.findings[0].refusal.code)
        return self._decision(
            entity, Outcome.BLOCKED, code, view=view, plan=plan, of=judgement, changes=changes
        )

    def _issue(self, proposal: Proposal) -> None:
        self.world.issue(proposal.entity, proposal.version)
        ramp = ramp_of(proposal, self.world) if proposal.intent is Intent.UPGRADE else None
        if ramp is not None:
            key = (proposal.entity.product, ramp.channel, ramp.version)
            self.world.ramp_starts[key] += 1

    def _nothing_proposed(self, entity: Entity, view: Outlook) -> Decision:
        """Return BLOCKED when the reasons can go without a new release or an edit of the entity's
        settings, else NO_WORK."""
        codes = list(_codes(view))
        curable = [code for code in codes if code in CURED_BY_OTHERS]
        outcome = Outcome.BLOCKED if curable else Outcome.NO_WORK
        code = curable[0] if curable else codes[0] if codes else FleetCode.UP_TO_DATE
        shown: tuple[Verdict, ...] = ()
        if view.rejected:
            shown = tuple(
                verdict(one.constraint, one.refusal, VerdictState.FAILED)
                for one in view.rejected[0].findings
            )
        return self._decision(
            entity, outcome, code, view=view, constraints=shown, changes=view.changes
        )

    def _running(self, entity: Entity, plan: ActivePlan) -> Decision:
        """Return the decision about an entity whose plan runs: whether to cancel it, and the
        command that waits for its end."""
        waiting = None
        changes: list[datetime | None] = [
            one.next_edge(self.now)
            for one in self.world.stops.all
            if one.cancel_active and one.concerns(entity.name)
        ]
        if entity.state.command is not None:
            first = outlook(entity, self.world, self.now, self.targets).proposals[0]
            judgement = judge(first, self.world, self.now, self.constraints)
            number = max(entity.state.last_number, plan.number) + 1
            view = self._view(first, number, entity.state.command.at, None)
            waiting = WaitingPlan(plan=view, constraints=judgement.verdicts)
            changes.append(judgement.next_change)
        running = PlanView.model_construct(
            id=f"{self.world.environment.name}/{entity.name}/{plan.number}",
            number=plan.number,
            kind=plan.kind,
            intent=plan.intent,
            from_=plan.before.version or entity.state.version,
            to=plan.to.version,
            config=plan.to.config,
            config_key=plan.to.config.key,
            status=plan.status,
        )
        return self._decision(
            entity,
            Outcome.ACTIVE,
            FleetCode.ACTIVE_PLAN,
            plan=running,
            waiting=waiting,
            cancel=self._cancel(entity, plan),
            changes=changes,
        )

    def _cancel(self, entity: Entity, plan: ActivePlan) -> str | None:
        if plan.status is ActiveStatus.CANCELLING:
            return None
        if self.world.facts.connection is not Connection.CONNECTED:
            return FleetCode.NOT_CONNECTED
        asked = any(
            one.cancel_active and one.active(self.now) and one.concerns(entity.name)
            for one in self.world.stops.all
        )
        return FleetCode.SUPPRESSED if asked else None

    def _plan(self, proposal: Proposal, *, blocked: bool) -> PlanView:
        """Return a proposal as a plan: the one that waits already when it is the same."""
        entity = proposal.entity
        previous = entity.state.proposed_plan
        same = previous is not None and proposal.same_as(
            previous.kind, previous.intent, previous.to
        )
        if previous is None or not same:
            number = max(entity.state.last_number, previous.number if previous else 0) + 1
            return self._view(proposal, number, self.now, self.now if blocked else None)
        since = previous.blocked_since
        if since is None or expired(entity, self.world, self.now):
            since = self.now
        return self._view(
            proposal, previous.number, previous.proposed_at, since if blocked else None
        )

    def _view(
        self, proposal: Proposal, number: int, proposed: datetime | None, blocked: datetime | None
    ) -> PlanView:
        current, target = scans_of(proposal, self.world) if proposal.vulnerable else (None, None)
        return PlanView.model_construct(
            id=f"{self.world.environment.name}/{proposal.entity.name}/{number}",
            number=number,
            kind=proposal.kind,
            intent=proposal.intent,
            from_=proposal.entity.state.version,
            to=proposal.version,
            config=proposal.config,
            config_key=proposal.config.key,
            secrets=proposal.secrets,
            downtime=proposal.downtime,
            proposed_at=proposed,
            blocked_since=blocked,
            skipped=proposal.skipped,
            command=proposal.command.id if proposal.command else None,
            risk=target.risk if target else None,
            current_risk=current.risk if current else None,
        )

    def _decision(
        self,
        entity: Entity,
        outcome: Outcome,
        code: str = "",
        *,
        view: Outlook | None = None,
        plan: PlanView | None = None,
        of: Judgement | None = None,
        constraints: tuple[Verdict, ...] = (),
        waiting: WaitingPlan | None = None,
        cancel: str | None = None,
        changes: Sequence[datetime | None] = (),
    ) -> Decision:
        turned_down = view.rejected if view else ()
        shown = [
            rejected(one.proposal.version or "", one.findings)
            for one in turned_down[:REJECTED_LIMIT]
        ]
        return Decision.model_construct(
            entity=f"{self.world.environment.name}/{entity.name}",
            at=self.now,
            outcome=outcome,
            code=str(code),
            installed=entity.state.version,
            plan=plan,
            wanted=shown[0].version if shown and plan is None else None,
            constraints=of.verdicts if of else constraints,
            rejected_targets=tuple(shown),
            rejected_count=len(turned_down),
            notes=tuple(view.notes) if view else (),
            waiting=waiting,
            discarded=self._discarded(entity, plan, waiting, outcome),
            cancel=cancel,
            next_evaluation_at=first_time(changes),
        )

    def _discarded(
        self, entity: Entity, plan: PlanView | None, waiting: WaitingPlan | None, outcome: Outcome
    ) -> DiscardedPlan | None:
        previous = entity.state.proposed_plan
        if previous is None or outcome in (Outcome.ACTIVE, Outcome.UNMANAGED):
            return None
        kept = {one.number for one in (plan, waiting.plan if waiting else None) if one}
        if previous.number in kept:
            return None
        late = expired(entity, self.world, self.now)
        reason = "NOT_NEEDED" if plan is None else "BLOCKED_4H" if late else "SUPERSEDED"
        return DiscardedPlan(number=previous.number, reason=reason)


def _codes(view: Outlook) -> Iterator[str]:
    if view.code is not None:
        yield view.code
    for one in view.rejected:
        for finding in one.findings:
            yield str(finding.refusal.code)
