"""How long a failed task waits before its next try (reference 3.9)."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, ValidationError

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.model import CompactValue, Duration

PACE = timedelta(seconds=1)
"""The pause between tries when back-off is off: a crash loop must not spin."""

_LONGEST = timedelta(days=365)

VARIABLES = {
    "ENABLE_BACKOFF": "enabled",
    "FRAMEWORK_INITIAL_BACKOFF": "initial",
    "FRAMEWORK_BACKOFF_FACTOR": "factor",
    "FRAMEWORK_MAX_LAUNCH_DELAY": "maximum",
}
"""The values of a deployment that say how it is, with the fields that they set (reference 3.9)."""

_FIX = "give delays up to a year as 60 (seconds) or 5m, the factor as a number from 1"


class Backoff(CompactValue):
    """The first delay, what each further one is multiplied with, and the longest.

    With ``enabled`` false a failed step reads PENDING and is tried again after ``PACE``.
    """

    enabled: bool = True
    initial: Duration = Field(default=timedelta(seconds=2), ge=timedelta(0), le=_LONGEST)
    factor: float = Field(default=1.5, ge=1, allow_inf_nan=False)
    maximum: Duration = Field(default=timedelta(seconds=300), ge=timedelta(0), le=_LONGEST)

    def after(self, previous: timedelta | None) -> timedelta:
        """The delay after one more failure; ``previous`` is the delay before, None at the first."""
        if not self.enabled:
            return PACE
        if previous is None:
            return min(self.initial, self.maximum)
        seconds = min(previous.total_seconds() * self.factor, self.maximum.total_seconds())
        return timedelta(seconds=seconds)

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "Backoff":
        """As the variables of reference 3.9 say; what is not set keeps our defaults. Raises
        SpecError, with the variable's name."""
        changes: dict[str, object] = {}
        problems: list[Problem] = []
        for name, field in VARIABLES.items():
            text = env.get(name, "").strip()
            if not text:
                continue
            changes[field] = text.lower() == "true" if field == "enabled" else _number(text)
            try:
                cls.model_validate({field: changes[field]})
            except ValidationError:
                problems.append(
                    Problem(path=name, message="is no value for back-off", value=text, fix=_FIX)
                )
        if problems:
            raise SpecError(problems)
        return cls.model_validate(changes)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
