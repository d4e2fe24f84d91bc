"""The owner of the pods that a step works on."""

from typing import NamedTuple

from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.plans import OwnerContext, PodContext
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.plans.attempt import StepAttempt


class PodOwner(NamedTuple):
    """The owner of a plan whose steps work on pods."""

    context: OwnerContext
    pods: PodContext

    @property
    def workflow_id(self) -> str:
        return self.context.workflow_id

    @property
    def name(self) -> str:
        return self.context.owner


def owner_of(step: StepAttempt) -> PodOwner:
    """Return the owner of the step's pods. Raises ApplicationError when the plan has none."""
    context = step.place.context
    if context is None or context.pods is None:
        text = f"a step of kind {step.work.kind} works on a service's pods; its plan has no service"
        raise refused(Code.NOT_APPLICABLE, text)
    return PodOwner(context, context.pods)
