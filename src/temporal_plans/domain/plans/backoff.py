"""The back-off: how long a failed task waits before its next attempt (behaviour 3.9)."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, ValidationError

from temporal_plans.domain.values.model import CompactValue, Duration
from temporal_plans.domain.values.refusal import Reason, SpecError

RETRY_INTERVAL = timedelta(seconds=1)
"""The delay between attempts when back-off is off: a crash loop must not spin."""

_DELAY_LIMIT = timedelta(days=365)

VARIABLES = {
    "ENABLE_BACKOFF": "enabled",
    "FRAMEWORK_INITIAL_BACKOFF": "initial",
    "FRAMEWORK_BACKOFF_FACTOR": "factor",
    "FRAMEWORK_MAX_LAUNCH_DELAY": "maximum",
}
"""The environment variables of a deployment that set it, with their fields (behaviour 3.9)."""

_FIX = "write delays up to a year as 60 (seconds) or 5m, the factor as a number from 1"


class Backoff(CompactValue):
    """The first delay, the factor from one delay to the next, and the longest delay.

    With ``enabled`` false a failed step reads PENDING and is retried after ``RETRY_INTERVAL``.
    """

    enabled: bool = True
    initial: Duration = Field(default=timedelta(seconds=2), ge=timedelta(0), le=_DELAY_LIMIT)
    factor: float = Field(default=1.5, ge=1, allow_inf_nan=False)
    maximum: Duration = Field(default=timedelta(seconds=300), ge=timedelta(0), le=_DELAY_LIMIT)

    def after(self, previous: timedelta | None) -> timedelta:
        """Return the delay after one more failure; ``previous`` is the last delay, None at
        first."""
        if not self.enabled:
            return RETRY_INTERVAL
        if previous is None:
            return min(self.initial, self.maximum)
        seconds = min(previous.total_seconds() * self.factor, self.maximum.total_seconds())
        return timedelta(seconds=seconds)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "Backoff":
        """Read the variables of behaviour 3.9; unset ones keep the defaults. Raises SpecError, with
        the variable's name."""
        changes: dict[str, object] = {}
        problems: list[Reason] = []
        for name, field in VARIABLES.items():
            text = env.get(name, "").strip()
            if not text:
                continue
            changes[field] = text.lower() == "true" if field == "enabled" else _number(text)
            try:
                cls.model_validate({field: changes[field]})
            except ValidationError:
                problems.append(
                    Reason(
                        field=name, problem="is not a valid back-off setting", value=text, fix=_FIX
                    )
                )
        if problems:
            raise SpecError(problems)
        return cls.model_validate(changes)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
