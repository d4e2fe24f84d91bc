"""What the steps of a plan that are at work have given to workers, and whether these take it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from temporal_plans.client.connection import ServerUnreachableError
from temporal_plans.client.errors import Refused
from temporal_plans.client.gateway import Gateway, NoSuchWorkflow
from temporal_plans.domain.cluster import AgentState
from temporal_plans.domain.explain import Cause, Explanation, Explanations, PendingWork
from temporal_plans.domain.status import Status

_MOST = 200
"""Steps that Temporal is asked about."""

Work = Mapping[str, Sequence[PendingWork]]


async def with_work(gateway: Gateway, plan_id: str, explanations: Explanations) -> Explanations:
    """The same with the work of the steps at work, and WORKER as the cause where none takes it.

    Temporal does not say for which of its inline steps a phase waits; it is told of the phase.
    """
    at_work = [one for one in explanations.explanations if _is_at_work(one)][:_MOST]
    own = await _work(gateway, [f"{plan_id}/{_path(one)}" for one in at_work])
    inline = {one.phase: one for one in at_work if f"{plan_id}/{_path(one)}" not in own}
    of_phases = await _work(gateway, [f"{plan_id}/{phase}" for phase in inline])
    now = datetime.now(UTC)
    told = [
        _with(one, own.get(f"{plan_id}/{_path(one)}", ()), now) for one in explanations.explanations
    ]
    told += _of_phases(plan_id, inline, of_phases, now)
    return explanations.but(explanations=tuple(told))


async def _work(gateway: Gateway, workflow_ids: Sequence[str]) -> Work:
    """Nothing when it can't be had: what the plan itself says is worth telling all the same."""
    try:
        return await gateway.pending_work(workflow_ids)
    except (NoSuchWorkflow, Refused, ServerUnreachableError):
        return {}


def _of_phases(
    plan_id: str, inline: Mapping[str, Explanation], of_phases: Work, now: datetime
) -> Iterator[Explanation]:
    for phase, one in inline.items():
        given = of_phases.get(f"{plan_id}/{phase}", ())
        if work := [one for one in given if one.type != "Step"]:
            text = "what its inline steps wait for:"
            yield _with(one.but(step="", text=text), work, now)


def needs_agents(explanations: Explanations) -> bool:
    """Whether an agent has work, so that a pool may have more to say."""
    return any(work.agent for one in explanations.explanations for work in one.work)


def with_agents(explanations: Explanations, agents: Mapping[str, AgentState]) -> Explanations:
    """The same with what the pools say of agents that have work and are not alive."""

    def with_state(work: PendingWork) -> PendingWork:
        state = agents.get(work.agent)
        return work if state in (None, AgentState.ALIVE) else work.but(agent_state=state)

    return explanations.but(
        explanations=tuple(
            one.but(work=tuple(map(with_state, one.work))) for one in explanations.explanations
        )
    )


def _is_at_work(one: Explanation) -> bool:
    return bool(one.step) and one.cause is Cause.RUNNING and one.status is not Status.PENDING


def _with(explanation: Explanation, work: Sequence[PendingWork], now: datetime) -> Explanation:
    waits = any(one.waits_for_a_worker(now) for one in work)
    return explanation.but(work=tuple(work), cause=Cause.WORKER if waits else explanation.cause)


def _path(explanation: Explanation) -> str:
    return f"{explanation.phase}/{explanation.step}"
