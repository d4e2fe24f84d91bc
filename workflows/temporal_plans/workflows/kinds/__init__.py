"""Step kinds: what the work of a step is.

Adding one: a file here with a function of the shape ``StepKind``, its value in ``domain.plan``, and
a line in ``_BUILT_IN``. Users register theirs by name with the plugin.
"""

from typing import Any

from temporal_plans.domain.plan import CustomWork, Work
from temporal_plans.workflows.kinds.activity import run_activity
from temporal_plans.workflows.kinds.approval import await_approval
from temporal_plans.workflows.kinds.command import run_command
from temporal_plans.workflows.kinds.pod import run_pod
from temporal_plans.workflows.kinds.sleep import run_sleep
from temporal_plans.workflows.kinds.upkeep import run_deregister, run_erase, run_kill, run_unreserve
from temporal_plans.workflows.kinds.workflow import run_workflow
from temporal_plans.workflows.registry import Registry, StepKind
from temporal_plans.workflows.step_context import StepContext

_BUILT_IN: dict[str, StepKind] = {
    "activity": run_activity,
    "approval": await_approval,
    "command": run_command,
    "deregister": run_deregister,
    "erase": run_erase,
    "kill": run_kill,
    "pod": run_pod,
    "sleep": run_sleep,
    "unreserve": run_unreserve,
    "workflow": run_workflow,
}


class UnknownStepKind(LookupError):
    """This worker does not know a step kind that the plan was accepted with.

    It must fail the workflow task, which is tried again until a worker that knows it is back.
    """


def kind_for(work: Work, registry: Registry) -> StepKind:
    """What runs this work. Raises UnknownStepKind."""
    if isinstance(work, CustomWork):
        return _custom(work.type, registry)
    return _BUILT_IN[work.kind]


def _custom(name: str, registry: Registry) -> StepKind:
    if name not in registry.kinds:
        known = ", ".join(sorted(registry.kinds)) or "none"
        raise UnknownStepKind(f"this worker knows no step kind {name!r}; it knows: {known}")

    async def run(step: StepContext) -> Any:
        step.begin()
        return await registry.kinds[name](step)

    return run
