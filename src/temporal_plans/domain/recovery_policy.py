"""When a pod that can't be brought back in place is replaced (reference 6.5)."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, TypeAdapter, ValidationError

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.model import CompactValue, Duration

_LONGEST = timedelta(days=365)

_SWITCH = "ENABLE_AUTOMATIC_POD_REPLACEMENT"
_DURATIONS = {
    "PERMANENT_FAILURE_TIMEOUT_SECS": "permanent_failure_timeout",
    "MIN_REPLACE_DELAY_SECS": "min_replace_delay",
}
VARIABLES = (_SWITCH, *_DURATIONS)
"""The values of a deployment that say what the policy is."""

_TIMEOUT = timedelta(seconds=1200)
"""PERMANENT_FAILURE_TIMEOUT_SECS when pods are replaced by themselves and it is not set."""

_bool: TypeAdapter[bool] = TypeAdapter(bool)


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
        problems: list[Problem] = []
        changes: dict[str, object] = {"permanent_failure_timeout": _TIMEOUT}
        for name, field in _DURATIONS.items():
            text = env.get(name, "").strip()
            if not text:
                continue
            try:
                policy = cls.model_validate({field: text if text[-1].isalpha() else f"{text}s"})
                changes[field] = getattr(policy, field)
            except ValidationError:
                problems.append(_problem(name, text, "a time up to a year as 60 (seconds) or 5m"))
        switch = env.get(_SWITCH, "").strip()
        try:
            enabled = _bool.validate_python(switch or "false")
        except ValidationError:
            enabled = False
            problems.append(_problem(_SWITCH, switch, "true or false"))
        if problems:
            raise SpecError(problems)
        if not enabled:
            del changes["permanent_failure_timeout"]
        return cls.model_validate(changes)


def _problem(name: str, text: str, fix: str) -> Problem:
    message = "is no value for the replacement of pods"
    return Problem(path=name, message=message, value=text, fix=f"give {fix}")
