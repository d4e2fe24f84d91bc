"""Which configuration an entity has for a version."""

from temporal_plans.domain.fleets.entities import ConfigRestart, Entity
from temporal_plans.domain.fleets.plans import EntityConfig
from temporal_plans.domain.fleets.versions import parse_version


def config_for(
    entity: Entity, version: str, environment_revision: str | None
) -> EntityConfig | None:
    """Return the configuration for a version: that of the greatest key that is not newer and has
    the same major number; None when no key covers the version. The key 2.0.0 does not cover
    2.0.0-rc1, which is older."""
    key = config_key(entity, version)
    if key is None or entity.settings is None:
        return None
    used = environment_revision if entity.settings.uses_environment_config else None
    block = entity.settings.config[key]
    return EntityConfig.model_construct(key=key, revision=block.revision, environment_revision=used)


def config_key(entity: Entity, version: str) -> str | None:
    """Return the key of the configuration for a version; None when there is none."""
    wanted = parse_version(version)
    if entity.settings is None or wanted is None or wanted.key is None:
        return None
    best: str | None = None
    best_order: tuple[int, ...] = ()
    for key in entity.settings.config:
        found = parse_version(key)
        if found is None or found.key is None or found.base[0] != wanted.base[0]:
            continue
        if best_order < found.key <= wanted.key:
            best, best_order = key, found.key
    return best


def restart_of(entity: Entity, key: str | None) -> ConfigRestart:
    """Return what a change of the configuration with a key does to the replicas."""
    block = entity.settings.config.get(key) if entity.settings and key else None
    return block.restart if block else ConfigRestart.ROLLING
