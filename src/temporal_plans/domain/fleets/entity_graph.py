"""Who needs whom in an environment: the entities, the dependencies between them, and what is wrong
with those."""

from collections.abc import Iterator, Sequence

from pydantic import Field

from temporal_plans.domain.fleets.dependency_groups import ignores
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.graph import ProductGraph
from temporal_plans.domain.fleets.releases import Dependency
from temporal_plans.domain.fleets.versions import in_range
from temporal_plans.domain.fleets.violations import range_text
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue

EDGES_LIMIT = 20_000
"""Dependencies that one graph has."""


class GraphEntity(CompactValue):
    """An entity. ``target`` is the version that its running plan leads to, or None."""

    name: str
    product: str
    version: str | None = None
    target: str | None = None


class GraphEdge(CompactValue):
    """``source`` needs ``target`` at versions in ``required``.

    Without a provider ``target`` is the product. ``problem`` is what is wrong, empty for nothing.
    ``cycle``: the target needs the source in turn.
    """

    source: str
    target: str
    required: str
    optional: bool = False
    cycle: bool = False
    problem: str = ""


class EntityGraph(CompressibleValue):
    """The entities of an environment by name, and their dependencies. ``cycles`` are groups of
    entities that need each other. ``truncated``: there are more than ``EDGES_LIMIT``."""

    environment: str
    entities: tuple[GraphEntity, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    cycles: tuple[tuple[str, ...], ...] = ()
    truncated: bool = Field(default=False)


def entity_graph(world: World) -> EntityGraph:
    """Return the graph of an environment: of what is installed by its version, of what is not by
    the release that it would be installed with."""
    edges = [edge for entity in world.entities.values() for edge in _edges(world, entity)]
    required: dict[str, set[str]] = {name: set() for name in world.entities}
    for edge in edges:
        if edge.target in required and not edge.optional:
            required[edge.source].add(edge.target)
    graph = ProductGraph(required, set())
    cycles = {group for name in required if len(group := graph.cycle(name)) > 1}
    return EntityGraph(
        environment=world.environment.name,
        entities=tuple(map(_entity, world.entities.values())),
        edges=tuple(
            one.but(cycle=one.target in graph.cycle(one.source) and one.target != one.source)
            for one in edges[:EDGES_LIMIT]
        ),
        cycles=tuple(sorted(cycles)),
        truncated=len(edges) > EDGES_LIMIT,
    )


def _entity(entity: Entity) -> GraphEntity:
    plan = entity.state.active_plan
    return GraphEntity(
        name=entity.name,
        product=entity.product,
        version=entity.state.version,
        target=plan.to.version if plan else None,
    )


def _edges(world: World, entity: Entity) -> Iterator[GraphEdge]:
    release = world.intended(entity)
    for dependency in release.dependencies if release else ():
        if ignores(entity, dependency.product):
            continue
        providers = world.providers(entity, dependency.product)
        external = any(
            one.product == dependency.product for one in world.settings.external_dependencies
        )
        if not providers and not external:
            problem = "" if dependency.optional else "nothing in its groups provides it"
            yield _edge(entity, dependency, dependency.product, problem)
        for provider in providers:
            yield _edge(entity, dependency, provider.name, _problem(entity, provider, dependency))


def _edge(entity: Entity, dependency: Dependency, target: str, problem: str) -> GraphEdge:
    return GraphEdge(
        source=entity.name,
        target=target,
        required=range_text(dependency),
        optional=dependency.optional,
        problem=problem,
    )


def _problem(entity: Entity, provider: Entity, dependency: Dependency) -> str:
    """Return what is wrong with a provider, now and with the plan that runs."""
    plan = provider.state.active_plan
    versions: Sequence[str | None] = (provider.state.version, plan.to.version if plan else None)
    low, high = dependency.minimum_version, dependency.maximum_version
    for version in versions:
        if version is not None and not in_range(version, low, high):
            return f"{version} is out of range"
    needs_it = entity.state.installed and not dependency.optional
    return "is not installed" if needs_it and not provider.state.installed else ""
