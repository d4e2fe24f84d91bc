"""What an environment's state becomes by its spoke: registered, away, and by its reports."""

from datetime import datetime, timedelta

from temporal_plans.domain.fleets.environment import Connection
from temporal_plans.domain.fleets.plans import ActiveStatus
from temporal_plans.domain.fleets.spokes import SpokeInfo, SpokeStanding, registered
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.messages.fleets.plans import IssuedPlan
from temporal_plans.messages.spokes import PlanAtSpoke, SpokeAnswer, SpokeReport
from temporal_plans.workflows.fleets import book


def with_spoke(state: EnvironmentState, info: SpokeInfo, now: datetime) -> EnvironmentState:
    """Return the state after a spoke has registered. Of plans that a spoke with another record took
    nothing is known: that record may have begun them."""
    standing = registered(state.spoke, info, now)
    after = _with_standing(state, standing).but(
        issued={name: _assigned(plan, info.record) for name, plan in state.issued.items()}
    )
    for name, plan in after.issued.items():
        if plan.spoke and plan.spoke != info.record:
            text = "the spoke that took it was replaced by one with another record"
            after = book.plan_lost(after, name, text)
    return after


def _assigned(plan: IssuedPlan, record: str) -> IssuedPlan:
    return plan.but(spoke=record) if plan.spoke == book.UNASSIGNED else plan


def without_contact(state: EnvironmentState, now: datetime) -> EnvironmentState:
    """Return the state after nothing was heard of the spoke since ``now``."""
    if state.spoke is None or state.spoke.away:
        return state
    return _with_standing(state, state.spoke.but(away=True, since=now))


def spoke_problems(state: EnvironmentState) -> list[str]:
    """Return what people should know of a spoke that does not work."""
    spoke = state.spoke
    if not state.environment.settings.spoke:
        return []
    if spoke is None:
        return ["its spoke has not registered yet"]
    host = f" on {spoke.info.hostname}" if spoke.info.hostname else ""
    since = f"{spoke.since:%Y-%m-%d %H:%M:%S %Z}"
    return [f"its spoke{host} is away; it was last heard of at {since}"] if spoke.away else []


def _with_standing(state: EnvironmentState, standing: SpokeStanding) -> EnvironmentState:
    if not state.environment.settings.spoke:  # of a former document
        return state.but(spoke=standing)
    facts = state.environment.facts.but(agent_seen_at=standing.since if standing.away else None)
    if facts.connection is Connection.UNKNOWN:
        facts = facts.but(connection=Connection.CONNECTED)
    return state.but(spoke=standing, environment=state.environment.but(facts=facts))


def lease_end(state: EnvironmentState) -> datetime | None:
    """Return when plans of a spoke that is away read UNKNOWN; None when there is none."""
    if state.spoke is None or not state.spoke.away:
        return None
    if not any(plan.spoke and not plan.lost for plan in state.issued.values()):
        return None
    timeout: timedelta = state.environment.settings.agent_timeout
    return state.spoke.since + timeout


def with_lost_lease(state: EnvironmentState) -> EnvironmentState:
    """Return the state after the spoke was away for too long: its plans read UNKNOWN until it
    reports, or an operator resolves them."""
    assert state.spoke is not None
    why = f"its spoke was last heard of at {state.spoke.since:%Y-%m-%d %H:%M:%S %Z}"
    for name, plan in state.issued.items():
        if plan.spoke and not plan.lost:
            state = book.plan_lost(state, name, why)
    return state


def reported(
    state: EnvironmentState, report: SpokeReport, now: datetime
) -> tuple[EnvironmentState, SpokeAnswer, list[str]]:
    """Return the state after a report, its answer, and what the log should say."""
    settled: list[str] = []
    unwanted: list[str] = []
    notes: list[str] = []
    for one in report.entities:
        issued = state.issued.get(one.entity)
        if issued is not None and issued.number == one.number:
            state = book.with_report(state, one, now)
    for name, plan in report.plans.items():
        over = plan.end is not None or bool(plan.lost)
        if _is_current(state, plan, report.record):
            state = _with_plan(state, plan, now)
        else:
            if not over:
                unwanted.append(name)
            notes += _late(state, name, plan)
            state = _with_number(state, plan)
        if over:
            settled.append(name)
    answer = SpokeAnswer(settled=tuple(settled), unwanted=tuple(unwanted))
    return state, answer, notes


def _is_current(state: EnvironmentState, plan: PlanAtSpoke, record: str) -> bool:
    """Whether a plan is the one that the environment has issued: the numbers of a hub that was
    restored from a backup may be given again, at another time."""
    issued, entity = state.issued.get(plan.entity), book.entity_of(state, plan.entity)
    active = entity.state.active_plan if entity else None
    if issued is None or active is None:
        return False
    return (issued.number, issued.spoke, active.issued_at) == (plan.number, record, plan.at)


def _with_plan(state: EnvironmentState, plan: PlanAtSpoke, now: datetime) -> EnvironmentState:
    name, end = plan.entity, plan.end
    if end is not None:
        return book.plan_ended(state, name, end.status, now, changed=end.changed, errors=end.errors)
    if plan.lost:
        return book.plan_lost(state, name, plan.lost)
    after = book.with_issued(state, name, started=True, lost="", progress=plan.progress)
    if not plan.started:
        return book.with_active(after, name, ActiveStatus.ISSUED)
    ending = bool(after.issued[name].ending)
    status = ActiveStatus.CANCELLING if ending else ActiveStatus.RUNNING
    return book.with_active(after, name, status)


def _late(state: EnvironmentState, name: str, plan: PlanAtSpoke) -> list[str]:
    """Return what the log should say of an end that is another than the recorded one."""
    if plan.end is None:
        return []
    rows = [one for one in state.history if (one.entity, one.number) == (plan.entity, plan.number)]
    if not rows or rows[-1].status == str(plan.end.status):
        return []
    return [f"{name} is recorded as {rows[-1].status}, and {plan.end.status} at its spoke"]


def _with_number(state: EnvironmentState, plan: PlanAtSpoke) -> EnvironmentState:
    """Return the state in which no later plan gets the number of one that the spoke has."""
    entity = book.entity_of(state, plan.entity)
    if entity is None or entity.state.last_number >= plan.number:
        return state
    return book.with_entity_state(state, plan.entity, last_number=plan.number)
