"""The seam of task kinds: what a task does, in parts that the activity calls for all tasks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from temporal_plans.activities.kubernetes.cluster import Manifest
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.domain.packages.inventory import ObjectRef


@dataclass(frozen=True)
class TaskState:
    """Whether a task is done, and else what it waits for, with the object in question. ``details``
    are what its pods and events say: another number in them is no news. ``gone`` are objects that
    a task that is done has deleted."""

    done: bool
    reason: str = ""
    about: ObjectRef | None = None
    details: str = ""
    gone: tuple[ObjectRef, ...] = ()


DONE = TaskState(done=True)


@dataclass(frozen=True)
class TaskExecution:
    """A task that is ready to be executed.

    ``objects`` are all that it may apply: their identities are recorded before ``begin`` of any
    task of the step. ``begin`` makes the task's change once; ``look`` is called after it, again and
    again, until the task is done. Both may be repeated by another execution after a crash. They
    raise TaskProblem and ClusterError. ``changes`` is whether it changes the cluster at all.
    """

    begin: Callable[[], Awaitable[None]]
    look: Callable[[], Awaitable[TaskState]]
    objects: Sequence[Manifest] = ()
    changes: bool = True


TaskKind = Callable[[Any, StepContext], Awaitable[TaskExecution]]
"""Prepares a task of one kind, without a change of anything. Raises TaskProblem, ClusterError."""
