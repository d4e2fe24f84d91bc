"""The step kind ``package-tasks``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Work


class PackageTasksWork(Work):
    """Execute tasks of the package that the plan's owner has installed. All are attempted, and the
    step is complete when all are done. What is done stays done until a restart of the step."""

    kind: Literal["package-tasks"] = Field(
        default="package-tasks", description="Always `package-tasks`."
    )
    tasks: tuple[str, ...] = Field(default=(), description="The names of the tasks, in order.")

    room: ClassVar[str] = "packages"
