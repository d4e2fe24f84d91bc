"""What differs between two configurations of a service (reference 5.8, 5.9)."""

from collections.abc import Iterable
from enum import StrEnum

from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.transitions import shortened


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


SUMMARY = 300
"""Characters of a summary at most."""


def summary(changes: Iterable[PodChange]) -> str:
    """What changes, in one line: ``world: cpus 0.1 -> 0.2; hello: 1 more``."""
    texts = [text for change in changes if (text := _summary(change))]
    return shortened("; ".join(texts), SUMMARY) or "nothing that a pod would notice"


def _summary(change: PodChange) -> str:
    texts = [f"{one.path} {one.before} -> {one.after}" for one in change.fields[:3]]
    if len(change.fields) > 3:
        texts.append(f"and {len(change.fields) - 3} more")
    for effect, word in ((PodEffect.ADD, "more"), (PodEffect.REMOVE, "fewer")):
        if count := sum(one.effect is effect for one in change.instances):
            texts.append(f"{count} {word}")
    return f"{change.pod}: {', '.join(texts)}" if texts else ""
