"""The policy of replacing pods that can't be brought back in place (behaviour 6.5)."""

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field, TypeAdapter, ValidationError

from temporal_plans.domain.values.model import CompactValue, Duration
from temporal_plans.domain.values.refusal import Reason, SpecError

_DURATION_LIMIT = timedelta(days=365)

_SWITCH = "ENABLE_AUTOMATIC_POD_REPLACEMENT"
_DURATIONS = {
    "PERMANENT_FAILURE_TIMEOUT_SECS": "permanent_failure_timeout",
    "MIN_REPLACE_DELAY_SECS": "min_replace_delay",
}
VARIABLES = (_SWITCH, *_DURATIONS)
"""The environment variables of a deployment that set the policy."""

_TIMEOUT = timedelta(seconds=1200)
"""The default of PERMANENT_FAILURE_TIMEOUT_SECS when automatic replacement is enabled."""

_bool: TypeAdapter[bool] = TypeAdapter(bool)


class RecoveryPolicy(CompactValue):
    """``permanent_failure_timeout``: a task that is down for that long is replaced on other
    resources; None: never automatically. ``min_replace_delay``: the minimum delay between two
    automatic replacements."""

    permanent_failure_timeout: Duration | None = Field(
        default=None, ge=timedelta(0), le=_DURATION_LIMIT
    )
    min_replace_delay: Duration = Field(
        default=timedelta(seconds=10), ge=timedelta(0), le=_DURATION_LIMIT
    )

    @classmethod
    def from_environment(cls, env: Mapping[str, str]) -> "RecoveryPolicy":
        """Read ENABLE_AUTOMATIC_POD_REPLACEMENT, PERMANENT_FAILURE_TIMEOUT_SECS (1200) and
        MIN_REPLACE_DELAY_SECS (10). Raises SpecError, with the variable's name."""
        problems: list[Reason] = []
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


def _problem(name: str, text: str, fix: str) -> Reason:
    message = "is not a valid setting of pod replacement"
    return Reason(field=name, problem=message, value=text, fix=f"write {fix}")
