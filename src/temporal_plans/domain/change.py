"""What differs between two configurations of a service (reference 5.8, 5.9)."""

from enum import StrEnum

from temporal_plans.domain.model import CompactValue


class FieldChange(CompactValue):
    """One field that differs. ``path`` as in the service file (``tasks.server.cmd``); ``before``
    and ``after`` as text, shortened, ``None`` where there is none. ``restarts``: running tasks are
    launched anew for it."""

    path: str
    before: str | None
    after: str | None
    restarts: bool = True


class PodEffect(StrEnum):
    """What becomes of instances of a pod."""

    NONE = "none"
    RESTART = "restart"
    ADD = "add"
    REMOVE = "remove"


class InstanceChange(CompactValue):
    """What becomes of one instance (``hello-0``)."""

    name: str
    effect: PodEffect


class PodChange(CompactValue):
    """A pod type: what differs in it, and what becomes of each of its instances."""

    pod: str
    fields: tuple[FieldChange, ...] = ()
    instances: tuple[InstanceChange, ...] = ()
