"""Explanations, completed with the commands that help a service's steps: to see what their tasks
wrote, to return to an earlier configuration, to remove an agent."""

from collections.abc import Mapping, Sequence

from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.explain import Explanation, Explanations
from temporal_plans.domain.plans.hint import Hint, plan_hint
from temporal_plans.domain.services.plan_names import DEPLOY
from temporal_plans.messages.pools import AgentView, PoolStatus
from temporal_plans.messages.services import PodView

_FAILED = (Cause.BACKOFF, Cause.ERROR, Cause.READINESS)

Places = Mapping[str, tuple[str, AgentView]]
"""Agents by id, each with the name of its pool."""


def places_of(pools: Sequence[PoolStatus]) -> Places:
    """Return the agents of all pools by id."""
    return {agent.info.id: (pool.name, agent) for pool in pools for agent in pool.agents}


def has_failed(explanation: Explanation) -> bool:
    """Return whether tasks of the step failed, or are not ready."""
    failed = explanation.cause in _FAILED or explanation.attempt > 1
    return failed and bool(explanation.tasks) and explanation.cause is not Cause.COMPLETE


def with_logs(explanations: Explanations, service: str) -> Explanations:
    """Return the explanations with a hint at the output of each task that failed, which is on its
    agent."""

    def completed(one: Explanation) -> Explanation:
        if not has_failed(one):
            return one
        return one.but(hints=(*one.hints, *(_log_hint(task, service) for task in one.tasks)))

    return explanations.but(explanations=tuple(map(completed, explanations.explanations)))


def with_rollback(explanations: Explanations, service: str, plan: str) -> Explanations:
    """Return the explanations of the plan ``deploy`` with a hint at the configuration before, after
    the last step that failed."""
    failed = [
        one
        for one in explanations.explanations
        if has_failed(one) and (one.cause is not Cause.READINESS or one.attempt > 1)
    ]
    if plan != DEPLOY or not failed:
        return explanations
    last = failed[-1]
    hint = plan_hint("to return to the configuration before", "rollback", service=service)
    return explanations.but(
        explanations=tuple(
            one.but(hints=(*one.hints, hint)) if one is last else one
            for one in explanations.explanations
        )
    )


def _log_hint(task: str, service: str) -> Hint:
    words = ("logs", task, "--stderr", "--tail", "20")
    return plan_hint(f"to see what {task} wrote", *words, service=service)


def with_lost_agents(
    explanations: Explanations, service: str, pods: Sequence[PodView], agents: Places
) -> Explanations:
    """Return the explanations with what helps a pod whose agent does not answer, or has no room for
    it: its reservation, with its volumes, is there."""
    by_name = {pod.name: pod for pod in pods}

    def completed(one: Explanation) -> Explanation:
        pod = by_name.get(one.pod or one.step.partition(":[")[0])
        if pod is None or one.cause is Cause.COMPLETE:
            return one
        more = agent_hints(pod, service, agents) or _bound_hints(pod, service, one.cause)
        return one.but(hints=(*one.hints, *more))

    return explanations.but(explanations=tuple(map(completed, explanations.explanations)))


def _bound_hints(pod: PodView, service: str, cause: Cause) -> tuple[Hint, ...]:
    """Return why only one agent is asked for a pod that waits for resources, and the way out."""
    if cause is not Cause.OFFER or pod.reservation is None:
        return ()
    agent, data = pod.reservation.agent, _data(pod)
    bound = f"pod {pod.name} is bound to agent {agent} by its reservation{data}"
    return (
        Hint(purpose=f"{bound}, so no other agent is asked; free resources there, or"),
        plan_hint(_elsewhere(pod), "pod", "replace", pod.name, service=service),
    )


def _data(pod: PodView) -> str:
    volumes = [one.name or one.id for one in _volumes(pod)]
    return f" and its data (volume {', '.join(volumes)})" if volumes else ""


def _elsewhere(pod: PodView) -> str:
    return "without it, on another agent" + (", with an empty volume" if _volumes(pod) else "")


def agent_hints(pod: PodView, service: str, agents: Places) -> tuple[Hint, ...]:
    """Return what helps a pod whose agent does not answer; nothing while its agent is ALIVE."""
    if pod.reservation is None:
        return ()
    agent = pod.reservation.agent
    pool, view = agents.get(agent, ("", None))
    if view is not None and view.state is AgentState.ALIVE:
        return ()
    state = f"is {view.state}" if view is not None else "is in no pool"
    place = f"pod {pod.name} has its place{_data(pod)} on agent {agent}"
    start = f"{place}, which {state}; start that agent"
    hints = [
        Hint(purpose=f"{start} again on its machine", command=""),
        plan_hint(_elsewhere(pod), "pod", "replace", pod.name, service=service),
    ]
    if view is not None:
        of_pool = () if pool == "default" else ("--pool", pool)
        gone = ("remove-agent", agent, "--force", *of_pool)
        hints.append(plan_hint("if its machine is gone, for all its pods", *gone))
    return tuple(hints)


def _volumes(pod: PodView) -> list[ReservedResource]:
    resources = pod.reservation.resources if pod.reservation else ()
    return [one for one in resources if one.kind == "volume"]
