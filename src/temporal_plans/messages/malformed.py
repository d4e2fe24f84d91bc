"""Signals that can't be read.

A signal has no answer, and the SDK drops arguments that it can't decode: a mistyped key would have
no effect, and its sender no notice.
"""

from typing import Any, Self

from pydantic import ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from temporal_plans.domain.values.complaints import complaints
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Reason


class SignalArgument(CompactValue):
    """The base of the arguments of signals that people send."""

    _malformed: str = PrivateAttr(default="")

    @property
    def malformed(self) -> str:
        """The problems of an argument that can't be read, for its handler to log; such an argument
        has no other values."""
        return self._malformed

    @model_validator(mode="wrap")
    @classmethod
    def _keep_the_malformed(cls, value: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return read(value)
        except ValidationError as error:
            unread = cls.model_construct()
            unread._malformed = "; ".join(str(_placed(one)) for one in complaints(error, cls))
            return unread


def _placed(reason: Reason) -> Reason:
    """Return the reason with a field also when it concerns the whole input."""
    return reason if reason.field else reason.but(field="input")
