"""The work that a plan's steps have given to workers, and whether a worker takes it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from temporal_plans.client.errors import Refused
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.client.temporal.workflow_errors import NoSuchWorkflow
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanation, Explanations, PendingWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.pools import AgentView

_STEP_LIMIT = 200
"""Steps whose work is queried from Temporal."""

Work = Mapping[str, Sequence[PendingWork]]


async def with_work(gateway: Gateway, plan_id: str, explanations: Explanations) -> Explanations:
    """Return the explanations with the pending work of each step at work; the cause becomes WORKER
    where no worker takes it.

    Temporal does not know for which of its inline steps a phase waits: their work gets an
    explanation of the phase.
    """
    at_work = [one for one in explanations.explanations if _is_at_work(one)][:_STEP_LIMIT]
    own = await _work(gateway, [f"{plan_id}/{_path(one)}" for one in at_work])
    inline = {one.phase: one for one in at_work if f"{plan_id}/{_path(one)}" not in own}
    of_phases = await _work(gateway, [f"{plan_id}/{phase}" for phase in inline])
    now = datetime.now(UTC)
    completed = [
        _with(one, own.get(f"{plan_id}/{_path(one)}", ()), now) for one in explanations.explanations
    ]
    completed += _of_phases(plan_id, inline, of_phases, now)
    return explanations.but(explanations=tuple(completed))


async def _work(gateway: Gateway, workflow_ids: Sequence[str]) -> Work:
    """Return the pending work, or nothing when the query fails: explanations are useful without."""
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
            text = "its inline steps wait for:"
            yield _with(one.but(step="", text=text), work, now)


def needs_agents(explanations: Explanations) -> bool:
    """Return whether work is on a task queue that may be an agent's."""
    queues = {work.task_queue for one in explanations.explanations for work in one.work}
    return bool(queues - {"", PLANS_QUEUE})


def with_agents(explanations: Explanations, agents: Iterable[AgentView]) -> Explanations:
    """Return the explanations with the agents of the work's task queues, and their state unless
    ALIVE. For a task queue that several agents share, the agent stays empty."""
    by_queue: dict[str, list[AgentView]] = defaultdict(list)
    for view in agents:
        by_queue[view.info.queue].append(view)

    def with_agent(work: PendingWork) -> PendingWork:
        match by_queue.get(work.task_queue):
            case [view]:
                state = "" if view.state is AgentState.ALIVE else view.state.value
                return work.but(agent=view.info.id, agent_state=state)
            case _:
                return work

    return explanations.but(
        explanations=tuple(
            one.but(work=tuple(map(with_agent, one.work))) for one in explanations.explanations
        )
    )


def _is_at_work(one: Explanation) -> bool:
    return bool(one.step) and one.cause is Cause.RUNNING and one.status is not Status.PENDING


def _with(explanation: Explanation, work: Sequence[PendingWork], now: datetime) -> Explanation:
    waits = any(one.waits_for_a_worker(now) for one in work)
    return explanation.but(work=tuple(work), cause=Cause.WORKER if waits else explanation.cause)


def _path(explanation: Explanation) -> str:
    return f"{explanation.phase}/{explanation.step}"
