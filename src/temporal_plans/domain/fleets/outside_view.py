"""What the other entities see of an entity."""

from typing import NamedTuple

from temporal_plans.domain.fleets.dependency_groups import groups_of
from temporal_plans.domain.fleets.entities import Entity


class OutsideView(NamedTuple):
    """What others see of an entity."""

    product: str
    managed: bool
    uninstall: bool
    groups: tuple[str, ...]
    overrides: dict[str, tuple[str, ...]]
    ignored: tuple[str, ...]
    channel: str | None
    namespace: str | None
    version: str | None
    target: str | None
    running: bool

    @classmethod
    def of(cls, entity: Entity) -> "OutsideView":
        settings, plan = entity.settings, entity.state.active_plan
        return cls(
            product=entity.product,
            managed=settings is not None,
            uninstall=settings is not None and settings.uninstall,
            groups=groups_of(entity),
            overrides=settings.dependency_group_overrides if settings else {},
            ignored=settings.ignored_dependencies if settings else (),
            channel=settings.release_channel if settings else None,
            namespace=settings.namespace if settings else None,
            version=entity.state.version,
            target=plan.to.version if plan else None,
            running=plan is not None,
        )
