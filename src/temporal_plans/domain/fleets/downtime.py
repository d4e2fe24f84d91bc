"""Whether a change needs downtime: at some time during it the service is not available.

Replicas change one by one. All of them stop together when the release says so (`shutdown`), when an
offline migration of data lies between the two versions, and in an uninstall.
"""

from temporal_plans.domain.fleets.configuration import restart_of
from temporal_plans.domain.fleets.entities import ConfigRestart, Entity
from temporal_plans.domain.fleets.plans import PlanKind
from temporal_plans.domain.fleets.releases import Release, UpgradeStrategy
from temporal_plans.domain.fleets.versions import compare, parse_version


def needs_downtime(
    entity: Entity,
    kind: PlanKind,
    current: Release | None,
    target: Release | None,
    config_key: str | None,
) -> bool:
    """Return whether a plan needs downtime. ``target`` is the release that is in place after it,
    ``config_key`` the key of its configuration."""
    if kind is PlanKind.UNINSTALL:
        return True
    if kind is PlanKind.INSTALL or entity.settings is None:
        return False
    if entity.settings.downtime is not None:
        return entity.settings.downtime
    if kind is PlanKind.CHANGE_CONFIG:
        restart = restart_of(entity, config_key)
        if restart is not ConfigRestart.ROLLING:
            return restart is ConfigRestart.SHUTDOWN
    release = target or current
    if release is None:
        return False
    if kind is not PlanKind.CHANGE_SECRETS and release.upgrade_strategy is UpgradeStrategy.SHUTDOWN:
        return True
    if kind is PlanKind.CHANGE_VERSION and crosses_offline_migration(current, release):
        return True
    replicas = entity.settings.replicas
    return replicas - 1 < release.quorum.needed(replicas)


def crosses_offline_migration(current: Release | None, target: Release) -> bool:
    """Return whether a migration that lies between two releases is offline: one that the newer has
    and the older has not, whichever of them is the target. A newer release may have dropped old
    ones, which lie before both. Of versions without an order all that differ count."""
    if current is None:
        return bool(_offline(target, beyond=None))
    up, down = _offline(target, beyond=current), _offline(current, beyond=target)
    one, other = parse_version(current.version), parse_version(target.version)
    if one is None or other is None or not (one.orderable and other.orderable):
        return bool(up or down)
    return bool(up if compare(one, other) < 0 else down)


def _offline(release: Release, *, beyond: Release | None) -> set[int]:
    """Return where the offline migrations start that a release has beyond those of another one."""
    known = {step.from_ for step in beyond.schema_migrations} if beyond else set[int]()
    return {step.from_ for step in release.schema_migrations if step.type == "offline"} - known
