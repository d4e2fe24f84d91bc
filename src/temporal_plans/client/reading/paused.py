"""The displayed statuses of a paused pod's steps (behaviour 6.8)."""

from collections.abc import Collection, Iterable

from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PlanView, StepView
from temporal_plans.messages.services import PodView

_PAUSED = ("PAUSED", "PAUSING")


def paused_pods(pods: Iterable[PodView]) -> frozenset[str]:
    """Return the names of the pods of which every task is paused, or is being paused."""
    return frozenset(
        pod.name
        for pod in pods
        if pod.tasks and all(pod.shown.get(task.name, "") in _PAUSED for task in pod.tasks)
    )


def with_paused(view: PlanView, paused: Collection[str]) -> PlanView:
    """Return the plan with its steps of paused pods displayed as PAUSED: PAUSING until the pod's
    placeholder has started. The statuses stay, because strategies and parents follow them."""

    def shown(step: StepView) -> StepView:
        if step.kind != "pod" or step.name.partition(":[")[0] not in paused:
            return step
        return step.but(display=_display(step.status))

    return view.but(
        phases=tuple(phase.but(steps=tuple(map(shown, phase.steps))) for phase in view.phases)
    )


def _display(status: Status) -> str:
    if status in (Status.COMPLETE, Status.STARTED):
        return "PAUSED"
    return "PAUSING" if status.running else ""
