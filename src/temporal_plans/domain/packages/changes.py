"""A change of what is installed: what differs, which plan it starts, and why."""

from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.packages.installation import SharedDefinition, Switches
from temporal_plans.domain.values.model import CompactValue, Name
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened

SUMMARY_LIMIT = 300
"""Characters of a summary at most."""

TEXT_LIMIT = 120
"""Characters of a value that a change shows."""

SECRET = "(secret)"  # what is shown in its place
"""The text that is shown in place of a secret value."""


class ChangeRequest(CompactValue):
    """A request to install, or to change what is installed. What is left out stays as it is.

    ``parameters`` are texts by name; None unsets one, so that its default is in effect. ``secrets``
    are references to values. ``exact``: parameters that are not named are unset, as in a rollback.
    """

    package: SharedDefinition | None = None
    parameters: dict[str, str | None] = Field(default={}, max_length=2_000)
    secrets: dict[str, str] = Field(default={}, max_length=2_000)
    exact: bool = False
    instance: Name = ""
    cluster: Name = ""
    namespace: Name = ""
    switches: Switches | None = None
    create_namespace: bool = False
    allow_downgrade: bool = False
    force: bool = False


class ParameterEffect(StrEnum):
    """What happens to a parameter. ``DEFAULT``: no value is given, and the default is another;
    ``DROP``: the package no longer has it, so its value is forgotten."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"
    DEFAULT = "default"
    DROP = "drop"


class ParameterChange(CompactValue):
    """A parameter that differs, with the texts in effect, shortened; None where there is none.
    Secret values are masked. ``trigger`` is the plan that it names itself."""

    name: str
    effect: ParameterEffect
    before: str | None = None
    after: str | None = None
    trigger: str = ""

    @property
    def is_asked_for(self) -> bool:
        """Whether a request gave, changed or unset the value."""
        return self.effect not in (ParameterEffect.DEFAULT, ParameterEffect.DROP)


class Cause(StrEnum):
    """What makes a plan run."""

    NOTHING = "nothing"
    INSTALLATION = "installation"
    PARAMETERS = "parameters"
    VERSION = "version"


class Change(CompactValue):
    """The difference between what is installed and what is to be.

    ``plan`` is the plan that it starts, empty where there is nothing to do; ``why`` says in words
    why it is that one. ``version_before`` and ``version`` are those of the package, as people read
    them. ``warnings`` say what people may not expect.
    """

    cause: Cause
    plan: str = ""
    why: str
    version_before: str = ""
    version: str
    parameters: tuple[ParameterChange, ...] = ()
    warnings: tuple[Reason, ...] = ()

    @property
    def summary(self) -> str:
        """The change in one line: ``version 1.0.0 -> 1.1.0; AGE 6 -> 7; NAME unset``."""
        texts = [_summary(one) for one in self.parameters]
        if len(texts) > 4:
            texts = [*texts[:3], f"{len(texts) - 3} more parameters"]
        if self.cause is Cause.INSTALLATION:
            texts.insert(0, f"version {self.version}")
        elif self.cause is Cause.VERSION:
            texts.insert(0, f"version {self.version_before} -> {self.version}")
        return shortened("; ".join(texts) or "no change", SUMMARY_LIMIT)


def _summary(change: ParameterChange) -> str:
    if change.effect is ParameterEffect.DROP:
        return f"{change.name} dropped"
    before = "(none)" if change.before is None else change.before or "(empty)"
    after = "(none)" if change.after is None else change.after or "(empty)"
    return f"{change.name} {before} -> {after}"
