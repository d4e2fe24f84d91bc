"""The step kind ``activity``."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds import faults
from temporal_plans.domain.kinds.temporal import QueueName, RetrySpec, TypeName
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.values.model import Duration
from temporal_plans.domain.values.refusal import Reason


class ActivityWork(Work):
    """Run a Temporal activity. ``input`` is its one argument; ``inputs`` are several."""

    kind: Literal["activity"] = Field(default="activity", description="Always `activity`.")
    type: TypeName = Field(description="The activity's type.", examples=["freeze_database"])
    task_queue: QueueName | None = Field(
        default=None,
        description="The task queue of the workers that know it. When absent: the plan's own.",
        examples=["database"],
    )
    input: Any = Field(
        default=None,
        description="Its one argument, any JSON. `${NAME}` in its texts stands for a parameter of"
        " the plan.",
        examples=[{"snapshot": "${SNAPSHOT}"}],
    )
    inputs: tuple[Any, ...] | None = Field(
        default=None,
        description="Its arguments when they are several. Not together with `input`.",
        examples=[["a", 3]],
    )
    timeout: Duration = Field(
        default=timedelta(minutes=10),
        description="How long one attempt may take.",
        examples=["2h"],
    )
    heartbeat_timeout: Duration | None = Field(
        default=None,
        description="How long an attempt may go without a heartbeat before it fails. When absent:"
        " no limit.",
        examples=["30s"],
    )
    schedule_to_close_timeout: Duration | None = Field(
        default=None,
        description="How long all attempts together may take. When absent: no limit.",
        examples=["1d"],
    )
    retry: RetrySpec | None = Field(
        default=None,
        description="How often and how fast it is retried. When absent: no limit.",
    )

    bare: ClassVar[str | None] = "type"

    def faults(self, path: str) -> Iterator[Reason]:
        yield from faults.of_inputs(self.input, self.inputs, path)
        yield from faults.of_type(self.type, path)
        yield from faults.of_queue(self.task_queue, path)
        yield from faults.of_duration(self.timeout, f"{path}.timeout")
        yield from faults.of_duration(self.heartbeat_timeout, f"{path}.heartbeat-timeout")
        limit = self.schedule_to_close_timeout
        yield from faults.of_duration(limit, f"{path}.schedule-to-close-timeout")
        if self.retry is not None:
            yield from self.retry.faults(f"{path}.retry")
