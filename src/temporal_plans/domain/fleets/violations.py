"""What the dependencies between entities forbid: the violations that a version would have.

Neighbours with a plan under way must fit at both their versions. An entity that has violations
already may change if that leaves fewer of them and adds none: otherwise it could never heal.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.dependency_groups import ignores
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.versions import in_range
from temporal_plans.domain.fleets.world import VersionOrNone, World


class Violation(NamedTuple):
    """A broken relation with a neighbour. ``rule`` is the constraint that it breaks, ``other`` the
    entity or product; the others are for people."""

    rule: str
    other: str
    code: FleetCode
    product: str
    current: str
    required: str


def violations(
    world: World,
    entity: Entity,
    version: VersionOrNone,
    *,
    installs: bool = False,
) -> tuple[Violation, ...]:
    """Return the violations with ``entity`` at ``version`` (None: not installed). When it is being
    installed, missing products that need it in turn are none."""
    found: list[Violation] = []
    release = world.release(entity, version)
    if release is not None:
        found += _incompatible(world, entity, release)
        for dependency in release.dependencies:
            if not ignores(entity, dependency.product):
                found += _own(world, entity, dependency, installs=installs)
    if version is not None:
        found += _opposed(world, entity, version)
    found += _dependents(world, entity, version)
    return tuple(found)


def newly_broken(
    world: World,
    entity: Entity,
    version: VersionOrNone,
    *,
    installs: bool = False,
) -> tuple[Violation, ...]:
    """Return the violations that forbid a version: none when it heals an installed entity."""
    key = (entity.name, version, installs)
    found = world.memo.get(key)
    if found is None:
        found = world.memo[key] = _newly_broken(world, entity, version, installs)
    return cast(tuple[Violation, ...], found)


def _newly_broken(
    world: World, entity: Entity, version: VersionOrNone, installs: bool
) -> tuple[Violation, ...]:
    after = violations(world, entity, version, installs=installs)
    if not after or not entity.state.installed:
        return after
    before = {(one.rule, one.other) for one in violations(world, entity, entity.state.version)}
    return () if {(one.rule, one.other) for one in after} < before else after


def _own(
    world: World, entity: Entity, dependency: Dependency, *, installs: bool
) -> Iterator[Violation]:
    """Yield the violations of one dependency: an installed provider that is out of range, or none
    at all."""
    product, required = dependency.product, range_text(dependency)
    external = [one for one in world.settings.external_dependencies if one.product == product]
    for one in external:
        if not in_range(one.version, dependency.minimum_version, dependency.maximum_version):
            yield Violation(
                "K11", product, FleetCode.EXTERNAL_DEPENDENCY, product, one.version, required
            )
    steady = bool(external)
    for provider in world.providers(entity, product):
        versions = world.versions(provider)
        wrong = [v for v in versions if v is not None and not _admits(dependency, v)]
        if wrong:
            code = FleetCode.DEPENDENCY_OUT_OF_RANGE
            yield Violation("K8", product, code, product, wrong[0], required)
        steady = steady or None not in versions
    if steady or dependency.optional:
        return
    if not (installs and world.tolerates(entity, product)):
        yield Violation("K8", product, FleetCode.DEPENDENCY_MISSING, product, "", required)


def _dependents(world: World, entity: Entity, version: VersionOrNone) -> Iterator[Violation]:
    """Yield the dependents that a version would break."""
    for dependent, dependency in world.dependents(entity):
        if dependent.name == entity.name or ignores(dependent, entity.product):
            continue
        if _without_breaking(world, entity, version, dependent, dependency):
            continue
        code, required = FleetCode.DEPENDENT_WOULD_BREAK, range_text(dependency)
        current = dependent.state.version or ""
        yield Violation("K9", dependent.name, code, dependent.product, current, required)


def _without_breaking(
    world: World,
    entity: Entity,
    version: VersionOrNone,
    dependent: Entity,
    dependency: Dependency,
) -> bool:
    if version is not None:
        return _admits(dependency, version)
    if dependency.optional:
        return True
    others = world.providers(dependent, entity.product)
    return any(other is not entity and None not in world.versions(other) for other in others)


def _incompatible(world: World, entity: Entity, release: Release) -> Iterator[Violation]:
    for rule in release.incompatibilities:
        for other in world.neighbours(entity, rule.product):
            yield from _clash(other, rule, world.versions(other))


def _opposed(world: World, entity: Entity, version: str) -> Iterator[Violation]:
    """Yield the entities whose releases declare that they are incompatible with a version."""
    for other, rule in world.opponents(entity):
        if other.name != entity.name:
            yield from _clash(other, rule, (version,), shown=other.state.version or "")


def _clash(
    other: Entity, rule: Incompatibility, versions: tuple[VersionOrNone, ...], shown: str = ""
) -> Iterator[Violation]:
    for version in versions:
        if version and in_range(version, rule.minimum_version, rule.maximum_version):
            required = f"not {range_text(rule)}"
            yield Violation(
                "K10", other.name, FleetCode.INCOMPATIBLE, other.product, shown or version, required
            )
            return


def _admits(dependency: Dependency, version: str) -> bool:
    return in_range(version, dependency.minimum_version, dependency.maximum_version)


def range_text(given: Dependency | Incompatibility) -> str:
    """Return a range for people: ``2.0.0 to 2.x.x``."""
    minimum, maximum = given.minimum_version, given.maximum_version
    if minimum and maximum:
        return f"{minimum} to {maximum}"
    if minimum:
        return f"{minimum} or newer"
    return f"{maximum} or older" if maximum else "any version"


def required_dependents(world: World, entity: Entity) -> tuple[Entity, ...]:
    """Return the installed entities that need an entity's product and see it, by name."""
    found = {
        dependent.name: dependent
        for dependent, dependency in world.dependents(entity)
        if not dependency.optional
        and dependent.name != entity.name
        and not ignores(dependent, entity.product)
    }
    return tuple(found[name] for name in sorted(found))
