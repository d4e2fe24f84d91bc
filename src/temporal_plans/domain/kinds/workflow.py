"""The step kind ``workflow``."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field

from temporal_plans.domain.kinds import faults
from temporal_plans.domain.kinds.temporal import QueueName, RetrySpec, TypeName
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.values.model import Duration
from temporal_plans.domain.values.refusal import Reason


class WorkflowWork(Work):
    """Run a child workflow and wait for it."""

    kind: Literal["workflow"] = Field(default="workflow", description="Always `workflow`.")
    type: TypeName = Field(description="The workflow's type.", examples=["CloseRelease"])
    task_queue: QueueName | None = Field(
        default=None,
        description="The task queue of the workers that know it. When absent: the plan's own.",
        examples=["database"],
    )
    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Its workflow id. `${NAME}` stands for a parameter of the plan. When absent:"
        " the step's id and the type.",
        examples=["close-${VERSION}"],
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
    timeout: Duration | None = Field(
        default=None,
        description="How long all its runs together may take. When absent: no limit.",
        examples=["1d"],
    )
    retry: RetrySpec | None = Field(
        default=None,
        description="How often and how fast it is retried. When absent: never.",
    )

    bare: ClassVar[str | None] = "type"

    def faults(self, path: str) -> Iterator[Reason]:
        yield from faults.of_inputs(self.input, self.inputs, path)
        yield from faults.of_type(self.type, path)
        yield from faults.of_queue(self.task_queue, path)
        size = len((self.id or "").encode(errors="replace"))
        if size > faults.MAX_ID_BYTES:
            yield Reason(
                field=f"{path}.id",
                problem=f"has {size} bytes; an id has {faults.MAX_ID_BYTES} at most",
                value=self.id,
            )
        yield from faults.of_duration(self.timeout, f"{path}.timeout")
        if self.retry is not None:
            yield from self.retry.faults(f"{path}.retry")
