"""Task kinds: what the tasks of packages do.

To add a kind: a file here with a class of the shape ``PackageTask``, and its line in
``TASK_KINDS``.
"""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from temporal_plans.domain.packages.tasks.apply import ApplyTask
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.domain.packages.tasks.delete import DeleteTask
from temporal_plans.domain.packages.tasks.dummy import DummyTask
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.packages.tasks.pipe import PipeTask
from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.tasks.toggle import ToggleTask

TASK_KINDS: tuple[type[PackageTask], ...] = (
    ApplyTask,
    DeleteTask,
    ToggleTask,
    PipeTask,
    NestedTask,
    DummyTask,
)

BY_NAME: dict[str, type[PackageTask]] = {kind.kind_name(): kind for kind in TASK_KINDS}

if TYPE_CHECKING:
    AnyTask = PackageTask
else:
    AnyTask = Annotated[Union[(*TASK_KINDS, CustomTask)], Field(discriminator="kind")]
"""Any kind of task; ``kind`` is the discriminator. A kind that is not built in is a
``CustomTask``."""
