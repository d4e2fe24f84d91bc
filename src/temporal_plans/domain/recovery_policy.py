"""When a pod that can't be brought back in place is replaced (reference 6.5)."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from temporal_plans.domain.model import CompactValue, Duration

_LONGEST = timedelta(days=365)


class RecoveryPolicy(CompactValue):
    """``permanent_failure_timeout``: a task that is down for that long is replaced on other
    resources; None: never by itself. ``min_replace_delay``: between two replacements that nobody
    ordered, at least."""

    permanent_failure_timeout: Duration | None = Field(default=None, ge=timedelta(0), le=_LONGEST)
    min_replace_delay: Duration = Field(default=timedelta(seconds=10), ge=timedelta(0), le=_LONGEST)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "RecoveryPolicy":
        """As ENABLE_AUTOMATIC_POD_REPLACEMENT, PERMANENT_FAILURE_TIMEOUT_SECS (1200) and
        MIN_REPLACE_DELAY_SECS (10) say. Raises SpecError, with the variable's name."""
        raise NotImplementedError
