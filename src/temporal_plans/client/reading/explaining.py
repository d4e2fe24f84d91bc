"""Explanations of a plan's steps, completed with the pools' current refusals."""

from collections.abc import Sequence

from temporal_plans.client.errors import Refused
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import CommandRefused, find_element
from temporal_plans.domain.plans.explain import ElementQuery, Explanation, Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.pools import WaitingView


def why_cut_short(run: PlanRun, query: ElementQuery) -> Explanations:
    """Return the explanation for a plan whose workflow ended before the plan was COMPLETE. Raises
    Refused for an unknown element."""
    failed = run.ended is Ended.FAILED
    if run.view.phases or not failed:  # a plan may fail before it has phases
        try:
            find_element(run.view.phases, run.view.id, query.phase, query.step)
        except CommandRefused as refused:
            raise Refused(refused.refusal) from None
    status = Status.ERROR if failed else run.view.status
    end = "the plan's workflow failed" if failed else f"the plan was {run.cut_short}"
    why = f": {run.why}" if run.why else ""
    explanation = Explanation(
        status=status,
        cause=Cause.ERROR if failed else Cause.CONTINUE,
        text=f"{end} before it was COMPLETE{why}; start or restart it",
    )
    return Explanations(status=status, explanations=(explanation,), cut_short=run.cut_short)


def needs_offers(explanations: Explanations) -> bool:
    """Return whether a step waits for an offer, so that a pool has refusals for it."""
    return any(explanation.cause is Cause.OFFER for explanation in explanations.explanations)


def with_refusals(
    explanations: Explanations, plan_id: str, waiting: Sequence[WaitingView]
) -> Explanations:
    """Return the explanations with the pools' current refusals.

    A requirement that no pool has any more was just met; its step keeps its earlier refusals.
    """
    return explanations.but(
        explanations=tuple(
            _joined(explanation, plan_id, waiting) for explanation in explanations.explanations
        )
    )


def _joined(explanation: Explanation, plan_id: str, waiting: Sequence[WaitingView]) -> Explanation:
    if explanation.cause is not Cause.OFFER:
        return explanation
    for view in waiting:
        if _is_for(view.requirement, plan_id, explanation):
            return explanation.but(refusals=view.refusals)
    return explanation


def _is_for(requirement: Requirement, plan_id: str, explanation: Explanation) -> bool:
    """Return whether the requirement is the step's. It notifies the step's workflow or, for an
    inline step, the phase's; then the pod decides."""
    phase = f"{plan_id}/{explanation.phase}"
    if requirement.notify == f"{phase}/{explanation.step}":
        return True
    names = (f"{requirement.pod}-{requirement.index}", requirement.pod)
    return requirement.notify == phase and explanation.pod.replace("/", ".") in names
