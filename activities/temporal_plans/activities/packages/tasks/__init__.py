"""How tasks are executed.

To add a kind: a file here with a function of the shape ``TaskKind``, and its line in
``TASK_KINDS``. Its fields are in ``domain/packages/tasks``.
"""

from collections.abc import Mapping

from temporal_plans.activities.packages.tasks.apply import apply
from temporal_plans.activities.packages.tasks.delete import delete
from temporal_plans.activities.packages.tasks.dummy import dummy
from temporal_plans.activities.packages.tasks.execution import TaskKind
from temporal_plans.activities.packages.tasks.nested import nested
from temporal_plans.activities.packages.tasks.pipe import PipeKind
from temporal_plans.activities.packages.tasks.toggle import toggle

TASK_KINDS: Mapping[str, TaskKind] = {
    "Apply": apply,
    "Delete": delete,
    "Toggle": toggle,
    "Pipe": PipeKind(),
    "KudoOperator": nested,
    "Dummy": dummy,
}
