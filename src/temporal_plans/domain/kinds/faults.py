"""Faults that the work of several kinds may have, and the limits of the Temporal server."""

from collections.abc import Iterator
from datetime import timedelta

from temporal_plans.domain.values.queues import RESERVED_QUEUES
from temporal_plans.domain.values.refusal import Reason

DURATION_LIMIT = timedelta(days=3650)
"""The Temporal server refuses longer durations."""

MAX_ID_BYTES = 1000
"""Bytes of a workflow id that the server takes."""


def of_type(name: str, path: str) -> Iterator[Reason]:
    """An activity's or a workflow's type must not be blank."""
    if not name.strip():
        yield Reason(field=f"{path}.type", problem="is empty", value=name)


def of_queue(queue: str | None, path: str) -> Iterator[Reason]:
    """A task queue must not be one of the server's own."""
    if queue is not None and queue.startswith(RESERVED_QUEUES):
        reserved = " or ".join(RESERVED_QUEUES)
        yield Reason(
            field=f"{path}.task-queue",
            problem=f"must not begin with {reserved}: those queues are the server's own",
            value=queue,
            fix="name the queue that your worker polls",
        )


def of_inputs(single: object, several: object, path: str) -> Iterator[Reason]:
    """One argument or several, not both."""
    if single is not None and several is not None:
        yield Reason(
            field=f"{path}.inputs",
            problem="input and inputs are both given",
            fix="use input for one argument, inputs for several",
        )


def of_duration(duration: timedelta | None, path: str) -> Iterator[Reason]:
    """A timeout, if given, must be above zero and within ``DURATION_LIMIT``."""
    if duration is not None and duration <= timedelta(0):
        yield Reason(
            field=path,
            problem="must be more than zero",
            value=duration.total_seconds(),
            fix="write for example 30s or 5m",
        )
    elif duration is not None:
        yield from of_length(duration, path)


def of_length(duration: timedelta, path: str) -> Iterator[Reason]:
    """A duration must be within ``DURATION_LIMIT``."""
    if duration > DURATION_LIMIT:
        yield Reason(
            field=path, problem="must be at most 10 years (3650d)", value=duration.total_seconds()
        )
