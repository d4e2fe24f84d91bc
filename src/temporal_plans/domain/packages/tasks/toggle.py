"""The task kind ``Toggle``."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask, no_resources
from temporal_plans.domain.packages.value import ENTRIES_LIMIT, Text
from temporal_plans.domain.values.refusal import Reason


class ToggleTask(PackageTask):
    """Apply objects while a parameter is true, and delete them while it is false."""

    kind: Literal["Toggle"] = "Toggle"
    parameter: Text = Field(default="", description="The name of a boolean parameter.")
    resources: tuple[Text, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The templates of the objects."
    )

    @property
    def templates(self) -> Sequence[str]:
        return self.resources

    @property
    def parameters(self) -> Sequence[str]:
        return (self.parameter,) if self.parameter else ()

    def faults(self) -> Iterator[Reason]:
        yield from no_resources(self.resources)
        if not self.parameter:
            yield Reason(
                field="parameter",
                problem="is missing",
                fix="name a parameter that is true or false",
            )
