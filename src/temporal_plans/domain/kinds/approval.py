"""The step kind ``approval``."""

from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Begins, Work


class ApprovalWork(Work):
    """Wait until an operator continues the step."""

    kind: Literal["approval"] = Field(default="approval", description="Always `approval`.")
    message: str = Field(
        default="",
        description="The question that the operator answers.",
        examples=["Is the dump complete?"],
    )

    bare: ClassVar[str | None] = "message"
    bare_types: ClassVar[tuple[str, ...]] = ("string", "boolean", "null")
    begins: ClassVar[Begins] = Begins.REPORTED
    approves: ClassVar[bool] = True

    @classmethod
    def written(cls, value: object) -> object:
        return {"kind": cls.name()} if value is True or value is None else super().written(value)
