"""Activities of the plans queue for steps that remove a service (behaviour 7.2, 8.2).

An activity that can't finish returns the reason (``waits``). It is then repeated with that reason
as ``known``, and returns when the work is done or the reason is another. So days of waiting take
only a few history events.
"""

from temporal_plans.domain.values.model import CompactValue


class RetireInput(CompactValue):
    """Input of ``retire_task``: end a task of ``service`` (the Service's workflow id). ``task_id``
    is one launch; empty: the newest. ``pool`` is the pool of the task's agent."""

    service: str
    pool: str
    task: str
    task_id: str = ""
    known: str = ""


class ReleaseReservationInput(CompactValue):
    """Input of ``release_reservation``: release a reservation from the Pool, wait until its agent
    has destroyed it, then notify the Service."""

    service: str
    pool: str
    key: str
    reservation: str = ""
    known: str = ""


class EraseInput(CompactValue):
    """Input of ``erase_task``: delete the Service's record of a task."""

    service: str
    task: str


class DeregisterInput(CompactValue):
    """Input of ``deregister``: release everything that the Pool still holds for the service."""

    service: str
    pool: str


class UpkeepResult(CompactValue):
    """Result of these activities. ``waits``, while not ``done``: what the activity waits for, and
    what the operator can do about it."""

    done: bool = True
    waits: str = ""
