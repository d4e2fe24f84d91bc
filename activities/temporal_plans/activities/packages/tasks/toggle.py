"""The task kind ``Toggle``."""

from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.apply import application
from temporal_plans.activities.packages.tasks.delete import deletion
from temporal_plans.activities.packages.tasks.execution import TaskExecution
from temporal_plans.domain.packages.parameters import boolean
from temporal_plans.domain.packages.tasks.toggle import ToggleTask


async def toggle(task: ToggleTask, context: StepContext) -> TaskExecution:
    """Apply the objects of its templates while its parameter is true, delete them while false."""
    execute = application if _value(task, context) else deletion
    return await execute(task.resources, context)


def _value(task: ToggleTask, context: StepContext) -> bool:
    name = task.parameter
    value = context.params.get(name)
    found = boolean(value) if isinstance(value, str) else None
    if found is None:
        problem = "is not true or false" if name in context.params else "is not defined"
        raise TaskProblem(f"parameter {name} {problem}; give it one of these values")
    return found
