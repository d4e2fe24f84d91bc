"""The differences between two configurations of a service (behaviour 5.8, 5.9)."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shortened


class FieldChange(CompactValue):
    """One field that differs. ``path`` as in the service file (``tasks.server.cmd``); ``before``
    and ``after`` as text, shortened, ``None`` where there is none. ``lines``: of texts of several
    lines those that differ, led by ``-`` or ``+``. ``restarts``: running tasks are relaunched for
    it."""

    path: str
    before: str | None
    after: str | None
    restarts: bool = True
    lines: tuple[str, ...] = ()


class PodEffect(StrEnum):
    """The effect of a change on instances of a pod."""

    NONE = "none"
    RESTART = "restart"
    ADD = "add"
    REMOVE = "remove"


class InstanceChange(CompactValue):
    """The effect of a change on one instance (``hello-0``)."""

    name: str
    effect: PodEffect


class PodChange(CompactValue):
    """A pod type: its changed fields, and the effect on each of its instances."""

    pod: str
    fields: tuple[FieldChange, ...] = ()
    instances: tuple[InstanceChange, ...] = ()


class PlanEffect(StrEnum):
    """The effect of a change on a plan."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


class PlanChange(CompactValue):
    """A plan of the file that differs, with its changed fields if both files have it."""

    plan: str
    effect: PlanEffect
    fields: tuple[FieldChange, ...] = ()


SUMMARY_LIMIT = 300
"""Characters of a summary at most."""


def summary(
    pods: Iterable[PodChange],
    plans: Iterable[PlanChange] = (),
    settings: Sequence[FieldChange] = (),
) -> str:
    """Return the changes in one line: ``world: cpus 0.1 -> 0.2; hello: 1 more; plan backup
    added``."""
    texts = [*map(_summary, pods), *map(_plan_summary, plans), ", ".join(_fields(settings))]
    return shortened("; ".join(filter(None, texts)), SUMMARY_LIMIT) or "no change"


_PLAN_WORDS = {PlanEffect.ADD: "added", PlanEffect.REMOVE: "removed", PlanEffect.CHANGE: "changed"}


def _plan_summary(change: PlanChange) -> str:
    if change.fields:
        return f"plan {change.plan}: {', '.join(_fields(change.fields))}"
    return f"plan {change.plan} {_PLAN_WORDS[change.effect]}"


def _fields(fields: Sequence[FieldChange]) -> list[str]:
    texts = [f"{one.path} {one.before or '(none)'} -> {one.after or '(none)'}" for one in fields]
    return texts if len(texts) <= 4 else [*texts[:3], f"and {len(texts) - 3} more"]


def _summary(change: PodChange) -> str:
    texts = _fields(change.fields)
    for effect, word in ((PodEffect.ADD, "more"), (PodEffect.REMOVE, "fewer")):
        if count := sum(one.effect is effect for one in change.instances):
            texts.append(f"{count} {word}")
    return f"{change.pod}: {', '.join(texts)}" if texts else ""
