"""The step kind ``pod``."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Asset, Begins, Work
from temporal_plans.domain.values.refusal import Reason


class PodWork(Work):
    """Launch some tasks of one pod instance of a service, all at once.

    ``tasks`` is empty only in a step with errors, which is never executed. ``recovery``: the step
    brings a failed pod back, on the resources it has or, ``permanent``, on others (behaviour 6.4).
    ``config_id`` is the configuration to launch; empty: the plan's own, or else the target.
    """

    kind: Literal["pod"] = Field(default="pod", description="Always `pod`.")
    pod: str = Field(description="The pod type.", examples=["hello"])
    index: int = Field(description="The instance's number, from 0.", examples=[0])
    tasks: tuple[str, ...] = Field(
        description="The tasks that are launched together.", examples=[["server"]]
    )
    recovery: Literal["transient", "permanent"] | None = Field(
        default=None,
        description="The step brings a failed pod back: in its place, or on other resources.",
    )
    config_id: str = Field(
        default="",
        description="The id of the configuration to launch. When empty: the plan's own, or else the"
        " target.",
    )

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.RESERVING

    def faults(self, path: str) -> Iterator[Reason]:
        if not self.tasks:
            yield Reason(
                field=f"{path}.tasks", problem="must not be empty", fix="name the tasks to launch"
            )

    @property
    def asset(self) -> Asset:
        return Asset(self.pod, self.index, self.tasks)

    def reserves_for(self, step: str) -> tuple[str, int]:
        return self.pod, self.index

    @property
    def keeps_its_place(self) -> bool:
        """Whether the step keeps its asset during a back-off. A recovery does not: a deployment may
        be about to fix the pod. Its phase starts it again when the back-off is over and no other
        step works on the pod."""
        return self.recovery is None
