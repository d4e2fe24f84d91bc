"""Explanations, completed with what stands still around a plan: workflows whose workflow task
fails, and pools that do not answer."""

from collections.abc import Iterable, Mapping, Sequence

from temporal_plans.client.errors import PlansError, Refused, StandsStill
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import ElementQuery, Explanation, Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.addresses import pool_id, service_id

EXAMINED_LIMIT = 300
"""Workflows of one plan that are examined."""

_OURS = frozenset({"Plan", "Phase", "Step", "Service", "Pool", "ScheduledRun"})


async def stuck_around(
    gateway: Gateway, plan_ids: Iterable[str], limit: int = EXAMINED_LIMIT
) -> Sequence[StuckWorkflow]:
    """Return the workflows of plans, and of the services that own them, whose workflow task fails;
    nothing when the query fails, because plans can be read without."""
    plans = list(plan_ids)
    owners = [service_id(owner) for plan in plans if (owner := plan.rpartition("/")[0])]
    try:
        return await gateway.stuck(list(dict.fromkeys((*owners, *plans))), limit)
    except (Refused, ServerUnreachableError):
        return ()


def with_stuck(
    explanations: Explanations, query: ElementQuery, stuck: Sequence[StuckWorkflow]
) -> Explanations:
    """Return the explanations with the workflows that stand still first.

    A step's own explanation, "is being worked on", is left out for a step that stands still; child
    workflows of developers are explained as the work of their steps.
    """
    wanted = [one for one in stuck if one.type in _OURS and _concerns(one, query)]
    elements = {one.element[1:] for one in wanted if one.type == "Step"}
    others = (one for one in explanations.explanations if (one.phase, one.step) not in elements)
    first = (_explanation(one, explanations.status) for one in wanted)
    return explanations.but(explanations=(*first, *others))


def with_silent_pools(explanations: Explanations, pools: Mapping[str, object]) -> Explanations:
    """Return the explanations with the pools whose answer is an error."""
    silent = (
        Explanation(
            status=explanations.status,
            cause=Cause.WORKER,
            text=_of_pool(name, error),
            hints=error.stuck.hints if isinstance(error, StandsStill) else (),
        )
        for name, error in pools.items()
        if isinstance(error, PlansError)
    )
    return explanations.but(explanations=(*explanations.explanations, *silent))


def _of_pool(name: str, error: PlansError) -> str:
    if isinstance(error, StandsStill):
        return f"{pool_id(name)} stands still: {error.stuck.text}"
    return f"pool {name} does not answer: {error}"


def _concerns(one: StuckWorkflow, query: ElementQuery) -> bool:
    _, phase, step = one.element
    return (not phase or query.phase in ("", phase)) and (not step or query.step in ("", step))


def _explanation(one: StuckWorkflow, status: Status) -> Explanation:
    _, phase, step = one.element
    return Explanation(
        phase=phase,
        step=step,
        status=status,
        cause=Cause.WORKER,
        text=f"{one.type.lower()} workflow {one.workflow_id} stands still: {one.text}",
        hints=one.hints,
    )
