"""The public API for developers of task kinds of operator packages. Needs the extra ``kubernetes``.

``docs/sdk.md`` has an example.
"""

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.packages.instance_objects import InstanceObjects
from temporal_plans.activities.packages.step_context import StepContext as TaskContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import (
    DONE,
    TaskExecution,
    TaskKind,
    TaskState,
)
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.tasks.custom import CustomTask

__all__ = [
    "DONE",
    "Cluster",
    "ClusterAccess",
    "ClusterError",
    "CustomTask",
    "InstanceObjects",
    "ObjectRef",
    "TaskContext",
    "TaskExecution",
    "TaskKind",
    "TaskProblem",
    "TaskState",
]
