"""The task kind ``Dummy``."""

from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import DONE, TaskExecution, TaskState
from temporal_plans.domain.packages.tasks.dummy import DummyTask


async def dummy(task: DummyTask, context: StepContext) -> TaskExecution:
    """Do nothing: succeed, fail, or never end."""

    async def begin() -> None:
        if task.want_err:
            raise TaskProblem("it fails, as its package says (wantErr)", passing=not task.fatal)

    async def look() -> TaskState:
        if task.done:
            return DONE
        reason = "it never ends, as its package says (done is not true); stop the plan"
        return TaskState(done=False, reason=f"task {task.name}: {reason}")

    return TaskExecution(begin=begin, look=look, changes=False)
