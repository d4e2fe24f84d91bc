"""Joining what a plan says of its waiting steps with what the pools say today."""

from collections.abc import Sequence

from temporal_plans.client.errors import Refused
from temporal_plans.client.gateway import Ended
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.domain.cluster import Requirement
from temporal_plans.domain.commands import CommandRefused, find_element
from temporal_plans.domain.explain import Cause, Explanation, Explanations
from temporal_plans.domain.status import Status
from temporal_plans.messages.cluster import WaitingView
from temporal_plans.messages.plan import ElementQuery


def why_cut_short(run: PlanRun, query: ElementQuery) -> Explanations:
    """For a plan whose workflow ended before the plan was COMPLETE: nothing of it moves. Raises
    Refused for an element that it has not."""
    failed = run.ended is Ended.FAILED
    if run.view.phases or not failed:  # it may have failed before it had any
        try:
            find_element(run.view.phases, run.view.id, query.phase, query.step)
        except CommandRefused as refused:
            raise Refused(str(refused)) from None
    status = Status.ERROR if failed else run.view.status
    what = "the plan's workflow failed" if failed else f"the plan was {run.cut_short}"
    why = f": {run.why}" if run.why else ""
    explanation = Explanation(
        status=status,
        cause=Cause.ERROR if failed else Cause.CONTINUE,
        text=f"{what} before it was COMPLETE{why}; `start` or `restart` begins it anew",
    )
    return Explanations(status=status, explanations=(explanation,), cut_short=run.cut_short)


def needs_offers(explanations: Explanations) -> bool:
    """Whether a step waits for an offer, so that a pool has more to say."""
    return any(explanation.cause is Cause.OFFER for explanation in explanations.explanations)


def with_refusals(
    explanations: Explanations, plan_id: str, waiting: Sequence[WaitingView]
) -> Explanations:
    """The same with the pools' refusals of today.

    A requirement that no pool holds any more has just been met; its step keeps what it heard.
    """
    return explanations.but(
        explanations=tuple(_joined(one, plan_id, waiting) for one in explanations.explanations)
    )


def _joined(explanation: Explanation, plan_id: str, waiting: Sequence[WaitingView]) -> Explanation:
    if explanation.cause is not Cause.OFFER:
        return explanation
    for view in waiting:
        if _is_for(view.requirement, plan_id, explanation):
            return explanation.but(refusals=view.refusals)
    return explanation


def _is_for(requirement: Requirement, plan_id: str, explanation: Explanation) -> bool:
    """A requirement notifies the step's own workflow, or its phase's when the step runs inline;
    there it is told by its pod."""
    phase = f"{plan_id}/{explanation.phase}"
    if requirement.notify == f"{phase}/{explanation.step}":
        return True
    names = (f"{requirement.pod}-{requirement.index}", requirement.pod)
    return requirement.notify == phase and explanation.pod.replace("/", ".") in names
