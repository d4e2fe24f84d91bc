"""The stop of a whole environment after too many failures."""

from collections.abc import Iterable
from datetime import datetime

from temporal_plans.domain.fleets.decisions import ThresholdChange
from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.fleets.suppressions import Origin, Suppression, first_time


def threshold_change(environment: Environment, now: datetime) -> ThresholdChange:
    """Return what begins or ends: the stop begins when more entities than the threshold are
    suppressed after failures, and ends when fewer are (or none); at the threshold it stays."""
    limit = environment.settings.suppress_deployment_after_num_autosuppressions
    stops = [
        one
        for one in environment.suppressions
        if one.origin is Origin.ENVIRONMENT_THRESHOLD and one.active(now)
    ]
    if limit is None:
        return ThresholdChange(removed=tuple(sorted(one.id for one in stops)))
    count = len({one.entity for one in _counted(environment) if one.active(now)})
    if not stops and count > limit:
        created = Suppression(
            id=f"threshold-{now:%Y%m%dT%H%M%S}",
            origin=Origin.ENVIRONMENT_THRESHOLD,
            start=now,
            reason=f"{count} entities are suppressed after failures, more than {limit}",
        )
        return ThresholdChange(created=created)
    if stops and (count < limit or count == 0):
        return ThresholdChange(removed=tuple(sorted(one.id for one in stops)))
    return ThresholdChange()


def _counted(environment: Environment) -> Iterable[Suppression]:
    """Return the suppressions that count; those of one version leave the entity free."""
    origins = {Origin.FAILED_PLAN}
    if environment.settings.count_origins == "all":
        origins.add(Origin.PROMOTION)
    return (
        one
        for one in environment.suppressions
        if one.origin in origins and one.entity is not None and one.target_version is None
    )


def with_change(
    suppressions: tuple[Suppression, ...], change: ThresholdChange
) -> tuple[Suppression, ...]:
    """Return the suppressions after a change of the threshold's own: the same object when there is
    none."""
    if change.created is None and not change.removed:
        return suppressions
    kept = tuple(one for one in suppressions if one.id not in change.removed)
    return (*kept, change.created) if change.created else kept


def next_count_change(environment: Environment, now: datetime) -> datetime | None:
    """Return when the count may change by itself; None when there is no threshold."""
    if environment.settings.suppress_deployment_after_num_autosuppressions is None:
        return None
    return first_time(one.next_edge(now) for one in _counted(environment))
