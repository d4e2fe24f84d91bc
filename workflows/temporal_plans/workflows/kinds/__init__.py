"""Step kinds: what the work of a step is.

Adding one: a file here with a function of the shape ``StepKind``, its value in ``domain.plan``, and
a line in ``_BUILT_IN``. Users register theirs by name with the plugin.
"""

from typing import Any

from temporalio.exceptions import ApplicationError

from temporal_plans.domain.plan import CustomWork, Work
from temporal_plans.workflows.kinds.activity import run_activity
from temporal_plans.workflows.kinds.approval import await_approval
from temporal_plans.workflows.kinds.command import run_command
from temporal_plans.workflows.kinds.pod import run_pod
from temporal_plans.workflows.kinds.sleep import run_sleep
from temporal_plans.workflows.kinds.workflow import run_workflow
from temporal_plans.workflows.registry import Registry, StepKind
from temporal_plans.workflows.step_context import StepContext

_BUILT_IN: dict[str, StepKind] = {
    "activity": run_activity,
    "approval": await_approval,
    "command": run_command,
    "pod": run_pod,
    "sleep": run_sleep,
    "workflow": run_workflow,
}


def kind_for(work: Work, registry: Registry) -> StepKind:
    """What runs this work. An unknown custom kind fails the attempt and names the known ones."""
    if isinstance(work, CustomWork):
        return _custom(work.type, registry)
    return _BUILT_IN[work.kind]


def _custom(name: str, registry: Registry) -> StepKind:
    kind = registry.kinds.get(name)

    async def run(step: StepContext) -> Any:
        step.begin()
        if kind is None:
            known = ", ".join(sorted(registry.kinds)) or "none"
            raise ApplicationError(
                f"this worker knows no step kind {name!r}; it knows: {known}."
                " Register it with PlansPlugin(step_kinds={...}) and restart the step",
                type="UnknownStepKind",
            )
        return await kind(step)

    return run
