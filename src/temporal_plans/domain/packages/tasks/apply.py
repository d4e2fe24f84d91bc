"""The task kind ``Apply``."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask, no_resources
from temporal_plans.domain.packages.value import ENTRIES_LIMIT, Text
from temporal_plans.domain.values.refusal import Reason


class ApplyTask(PackageTask):
    """Apply objects to the cluster, and wait until they are healthy."""

    kind: Literal["Apply"] = "Apply"
    resources: tuple[Text, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The templates of the objects."
    )

    @property
    def templates(self) -> Sequence[str]:
        return self.resources

    def faults(self) -> Iterator[Reason]:
        return no_resources(self.resources)
