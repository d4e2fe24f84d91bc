"""The step kind ``package-removal``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class PackageRemovalWork(Work):
    """Delete all objects that the plan's owner has in its cluster. Claims that its pods made stay
    unless ``volumes``."""

    kind: Literal["package-removal"] = Field(
        default="package-removal", description="Always `package-removal`."
    )
    volumes: bool = Field(default=False, description="Delete the claims of its pods as well.")

    room: ClassVar[str] = "packages"
    begins: ClassVar[Begins] = Begins.WORKING
    removes: ClassVar[bool] = True
