"""The statuses of elements, and how children's statuses fold into their parent's (behaviour 1).

Rules for editors: this is the only place that decides a parent's status, and the order of the rows
is behaviour that clients rely on (behaviour 1.4, with the two corrections of design 8).
"""

from collections.abc import Iterable
from enum import StrEnum


class Status(StrEnum):
    """Behaviour 1.1. ``WAITING`` is derived, never stored."""

    ERROR = "ERROR"
    WAITING = "WAITING"
    PENDING = "PENDING"
    PREPARED = "PREPARED"
    STARTING = "STARTING"
    STARTED = "STARTED"
    COMPLETE = "COMPLETE"
    IN_PROGRESS = "IN_PROGRESS"
    DELAYED = "DELAYED"

    __hash__ = str.__hash__  # Enum's own is slow, and a tree's statuses are hashed often

    @property
    def running(self) -> bool:
        """Whether work is under way: exactly PREPARED, STARTING, STARTED and IN_PROGRESS."""
        return self in _RUNNING


_RUNNING = frozenset({Status.PREPARED, Status.STARTING, Status.STARTED, Status.IN_PROGRESS})

_LEAST_FIRST = (
    Status.ERROR,
    Status.DELAYED,
    Status.PENDING,
    Status.PREPARED,
    Status.STARTING,
    Status.STARTED,
    Status.COMPLETE,
)


def least(statuses: Iterable[Status]) -> Status:
    """Return the least status of a step's tasks, in the order of behaviour 3.4, rows 4 to 10."""
    present = set(statuses)
    return next(status for status in _LEAST_FIRST if status in present)


def aggregate(
    children: Iterable[Status],
    candidates: Iterable[Status],
    *,
    errors: bool = False,
    interrupted: bool = False,
) -> Status:
    """Return the status of a parent (behaviour 1.4; the first matching row wins).

    ``candidates`` are the statuses of the children that the parent's strategy would pick with
    nothing dirty; ``errors`` whether the parent or any descendant has an error text;
    ``interrupted`` whether the parent's own strategy is interrupted.
    """
    kids, picks = set(children), set(candidates)
    some_complete = Status.COMPLETE in kids
    if errors or Status.ERROR in kids:
        return Status.ERROR
    if kids <= {Status.COMPLETE}:
        return Status.COMPLETE
    if interrupted:
        return Status.WAITING
    if kids == {Status.DELAYED} and picks <= {Status.DELAYED}:
        return Status.DELAYED
    if Status.PREPARED in kids:
        return Status.IN_PROGRESS
    if Status.WAITING in picks:
        return Status.WAITING
    if Status.IN_PROGRESS in picks:
        return Status.IN_PROGRESS
    if some_complete and picks & {Status.PENDING, Status.STARTING, Status.STARTED}:
        return Status.IN_PROGRESS
    if Status.PENDING in picks:
        return Status.PENDING
    if Status.WAITING in kids:
        return Status.WAITING
    for status in (Status.STARTING, Status.STARTED):
        if status in picks:
            return status
    return _without_a_row(kids, picks)


def _without_a_row(kids: set[Status], picks: set[Status]) -> Status:
    """Return the status where behaviour 1.4 row 15 says ERROR by accident (design 8)."""
    if Status.DELAYED in picks:
        return Status.IN_PROGRESS if Status.COMPLETE in kids else Status.DELAYED
    if any(status.running for status in kids):
        return Status.IN_PROGRESS  # what runs is no candidate: an earlier element was restarted
    return Status.ERROR  # nothing may run and nothing waits: a strategy that picks no child
