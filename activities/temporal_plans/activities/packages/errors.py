"""What errors mean for tasks, and for the step that they belong to."""

import logging

from temporalio.service import RPCError

from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.values.refusal import Code, RefusedError
from temporal_plans.messages.packages import TasksInput

_log = logging.getLogger(__name__)


def problem_of(error: Exception) -> TaskProblem:
    """Return what an error means for the task, or the step, that it was raised in."""
    match error:
        case TaskProblem():
            return error
        case ClusterError():
            return TaskProblem(str(error), passing=error.passing, about=error.about)
        case RefusedError():
            return TaskProblem(str(error), passing=error.refusal.code == Code.UNAVAILABLE)
        case RPCError():
            return TaskProblem(f"Temporal: {error.message}", passing=True)
        case _:  # of a kind of developers, or a fault of ours: people see it, and it is tried again
            _log.warning("A task of a package raised %s.", type(error).__name__)
            return TaskProblem(f"{type(error).__name__}: {error}", passing=True)


def located(problem: TaskProblem, order: TasksInput, task: str = "") -> TaskProblem:
    """Return a problem with its place before the reason: plan, phase, step, and task if of one."""
    place = ".".join(filter(None, (order.plan, order.phase, order.step, task)))
    return TaskProblem(f"{place}: {problem}", passing=problem.passing, about=problem.about)
