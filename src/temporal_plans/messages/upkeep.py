"""Activities of the plans queue for steps that take a service away (reference 7.2, 8.2).

Each is asked again with what it ``waits`` for, as ``known``; it then answers when the work is done
or waits for something else. So days of waiting are a few lines of history.
"""

from temporal_plans.domain.model import CompactValue


class RetireInput(CompactValue):
    """Input of ``retire_task``: end a task of ``service``, the Service's workflow id. ``task_id``
    is one launch of it; empty: the newest. ``pool`` knows how its agent is."""

    service: str
    pool: str
    task: str
    task_id: str = ""
    known: str = ""


class ReleaseReservationInput(CompactValue):
    """Input of ``release_reservation``: have the Pool take a reservation back and its agent destroy
    what it holds, then tell the Service."""

    service: str
    pool: str
    key: str
    reservation: str = ""
    known: str = ""


class EraseInput(CompactValue):
    """Input of ``erase_task``: have the Service forget a task."""

    service: str
    task: str


class DeregisterInput(CompactValue):
    """Input of ``deregister``: give up whatever the Pool still keeps for the service."""

    service: str
    pool: str


class UpkeepResult(CompactValue):
    """``waits``: what it waits for and what would help, for people, while it is not ``done``."""

    done: bool = True
    waits: str = ""
