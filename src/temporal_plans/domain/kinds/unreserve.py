"""The step kind ``unreserve``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class UnreserveWork(Work):
    """Release a resource on an agent (behaviour 7.2, 8.2): ``resource`` is its id, ``key`` and
    ``reservation`` (its id) the reservation that it belongs to, ``agent`` the agent. Another
    reservation that has the key since then is left alone."""

    kind: Literal["unreserve"] = Field(default="unreserve", description="Always `unreserve`.")
    resource: str = Field(description="The resource's id.")
    key: str = Field(description="The key of the reservation that it belongs to.")
    reservation: str = Field(
        default="",
        description="The reservation's id. When empty: the reservation that has the key.",
    )
    agent: str = Field(default="", description="The agent that it is on.")

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.RELEASING
    removes: ClassVar[bool] = True
