"""Field types that the kinds ``activity`` and ``workflow`` share."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from temporal_plans.domain.kinds import faults
from temporal_plans.domain.values.model import CompactValue, Duration
from temporal_plans.domain.values.refusal import Reason

TypeName = Annotated[str, Field(min_length=1, max_length=200)]
QueueName = Annotated[str, Field(min_length=1, max_length=200)]
"""Names within the server's limit of 1,000 bytes, with room for prefixes and suffixes."""


class RetrySpec(CompactValue):
    """Temporal's retry policy, with its field names. ``maximum_attempts`` 0: no limit."""

    initial_interval: Duration = Field(
        default=timedelta(seconds=1), description="The pause before the second attempt."
    )
    backoff_coefficient: float = Field(
        default=2.0,
        ge=1,
        allow_inf_nan=False,
        description="The factor from one pause to the next.",
    )
    maximum_interval: Duration | None = Field(
        default=None,
        description="The longest pause, not less than `initial-interval`. When absent: 100 times"
        " the first one.",
        examples=["5m"],
    )
    maximum_attempts: int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="The limit of attempts, the first included; 0: no limit.",
        examples=[3],
    )
    non_retryable_error_types: tuple[str, ...] = Field(
        default=(),
        description="Types of errors after which there is no further attempt.",
        examples=[["InvalidSnapshot"]],
    )

    def faults(self, path: str) -> Iterator[Reason]:
        """Yield the faults of the policy at ``path``."""
        yield from faults.of_duration(self.initial_interval, f"{path}.initial-interval")
        yield from faults.of_duration(self.maximum_interval, f"{path}.maximum-interval")
        longest = self.maximum_interval
        if longest is not None and timedelta(0) < longest < self.initial_interval:
            yield Reason(
                field=f"{path}.maximum-interval",
                problem="must not be less than initial-interval",
                value=longest.total_seconds(),
            )
