"""The step kind ``custom``."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds.work import Work


class CustomWork(Work):
    """A step kind that a developer registered with the plugin, by the name ``type``."""

    kind: Literal["custom"] = Field(default="custom", description="Always `custom`.")
    type: str = Field(
        description="The name that it was registered under with `PlansPlugin(step_kinds=…)`.",
        examples=["http-check"],
    )
    input: Any = Field(
        default=None,
        description="The input of the step kind, any JSON. `${NAME}` in its texts stands for a"
        " parameter of the plan.",
        examples=[{"url": "http://localhost/"}],
    )

    bare: ClassVar[str | None] = "type"
