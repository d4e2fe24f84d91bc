"""What is seen of an object of an instance in its cluster, in bounded texts."""

from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.values.model import CompactValue

REASON_LIMIT, NOTE_LIMIT, CHANGES_LIMIT = 500, 300, 10
"""Characters of a reason and of a note about pods or events; changed fields that are named."""

NOTES_LIMIT = 3
"""Pods in trouble, and events, that the report of one object has."""


class ObjectState(StrEnum):
    """How an object is. ``FAILED``: it will not become healthy by itself. ``FOREIGN``: it belongs
    to another owner now. ``UNKNOWN``: the cluster did not let the worker look."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    FAILED = "failed"
    MISSING = "missing"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


class FieldChange(CompactValue):
    """A field that another client has set since the object was applied, by the name under which the
    API server knows that client (``kubectl-edit``). ``at`` is its time, as the server writes it."""

    field: str = Field(max_length=NOTE_LIMIT)
    by: str = Field(max_length=NOTE_LIMIT)
    at: str = Field(default="", max_length=40)

    def __str__(self) -> str:
        return f"{self.field} (by {self.by})"


class ObjectReport(CompactValue):
    """One object. ``reason`` says why it is not healthy, ``pods`` what is wrong with pods of it,
    ``events`` are its last warnings, ``changes`` what others have changed."""

    ref: ObjectRef
    state: ObjectState
    reason: str = Field(default="", max_length=REASON_LIMIT)
    pods: tuple[str, ...] = Field(default=(), max_length=NOTES_LIMIT)
    events: tuple[str, ...] = Field(default=(), max_length=NOTES_LIMIT)
    changes: tuple[FieldChange, ...] = Field(default=(), max_length=CHANGES_LIMIT)

    @property
    def notable(self) -> bool:
        """Whether there is more to say than that it is healthy."""
        return self.state is not ObjectState.HEALTHY or bool(self.changes)
