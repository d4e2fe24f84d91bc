"""The step kind ``erase``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class EraseWork(Work):
    """Delete the record of a service's task (behaviour 7.2). ``task`` is the task instance's
    name."""

    kind: Literal["erase"] = Field(default="erase", description="Always `erase`.")
    task: str = Field(description="The task instance's name.", examples=["hello-0-server"])

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.WORKING
    removes: ClassVar[bool] = True
