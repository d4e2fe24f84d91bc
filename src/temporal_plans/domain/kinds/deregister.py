"""The step kind ``deregister``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class DeregisterWork(Work):
    """Deregister the service: the last step of an uninstall (behaviour 8.2)."""

    kind: Literal["deregister"] = Field(default="deregister", description="Always `deregister`.")

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.RELEASING
    removes: ClassVar[bool] = True
