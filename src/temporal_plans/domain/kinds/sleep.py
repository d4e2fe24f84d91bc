"""The step kind ``sleep``."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds import faults
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.values.model import Duration
from temporal_plans.domain.values.refusal import Reason


class SleepWork(Work):
    """Wait for a duration."""

    kind: Literal["sleep"] = Field(default="sleep", description="Always `sleep`.")
    duration: Duration = Field(description="How long, from the step's start.", examples=["5m"])

    bare: ClassVar[str | None] = "duration"
    bare_types: ClassVar[tuple[str, ...]] = ("string", "number")

    def faults(self, path: str) -> Iterator[Reason]:
        if self.duration < timedelta(0):
            yield Reason(
                field=f"{path}.duration",
                problem="must not be negative",
                value=self.duration.total_seconds(),
            )
        yield from faults.of_length(self.duration, f"{path}.duration")
