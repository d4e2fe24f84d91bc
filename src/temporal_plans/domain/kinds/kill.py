"""The step kind ``kill``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class KillWork(Work):
    """End a task of a service permanently (behaviour 7.2, 8.2). ``task`` is the task instance's
    name (``hello-0-server``); ``task_id`` is the id of one launch of it, empty: the newest."""

    kind: Literal["kill"] = Field(default="kill", description="Always `kill`.")
    task: str = Field(description="The task instance's name.", examples=["hello-0-server"])
    task_id: str = Field(
        default="", description="The id of one launch of it. When empty: the newest."
    )

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.WORKING
    removes: ClassVar[bool] = True
