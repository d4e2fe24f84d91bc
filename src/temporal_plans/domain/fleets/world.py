"""A snapshot with indexes, and what a pass of decisions has issued so far."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from temporal_plans.domain.fleets.entities import ALL_GROUPS, DEFAULT_GROUPS, Entity
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.graph import ProductGraph
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.recalls import Recall, covering
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.suppressions import Suppression, WindowClass
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.windows import ALL_TIME, Window, intersection, union

VersionOrNone = str | None
_Place = tuple[str, str]
"""A product in a dependency group."""
_Need = tuple[Entity, Dependency]
_Ban = tuple[Entity, Incompatibility]


class Catalogue:
    """The releases of one product, by version and by channel."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.releases: dict[str, Release] = {one.version: one for one in product.releases}
        self._channels: dict[str, tuple[Release, ...]] = {}
        self._recalls: dict[str, tuple[Recall, ...]] = {}

    def channel(self, name: str) -> tuple[Release, ...]:
        """Return the releases of a channel, newest first: by version, then by the time of
        publishing, then by text. Versions without an order are last."""
        if name not in self._channels:
            found = [one for one in self.releases.values() if name in one.channels]
            self._channels[name] = tuple(sorted(found, key=_age, reverse=True))
        return self._channels[name]

    def recalls(self, version: str) -> tuple[Recall, ...]:
        """Return the active recalls that cover a version."""
        if version not in self._recalls:
            self._recalls[version] = covering(self.product.recalls, version)
        return self._recalls[version]

    def ramp(self, channel: str, version: str) -> Ramp | None:
        ramps = self.product.ramps
        return next((r for r in ramps if (r.channel, r.version) == (channel, version)), None)


def _age(release: Release) -> tuple[tuple[int, ...], float, str]:
    version = parse_version(release.version)
    published = release.published_at.timestamp() if release.published_at else 0.0
    return (version.key if version and version.key else (), published, release.version)


class World:
    """The snapshot, indexed. ``issue`` records what the pass issues, so that later proposals see
    it."""

    def __init__(self, snapshot: Snapshot, suppressions: Iterable[Suppression]) -> None:
        self.environment = snapshot.environment
        self.settings = snapshot.environment.settings
        self.facts = snapshot.environment.facts
        self.suppressions = tuple(sorted(suppressions, key=lambda one: (one.start, one.id)))
        self.overrides = tuple(sorted(self.environment.overrides, key=lambda one: one.id))
        self.catalogues = {one.id: Catalogue(one) for one in snapshot.products}
        self.entities = {
            one.name: one for one in sorted(self.environment.entities, key=lambda one: one.name)
        }
        self.by_product: dict[str, list[Entity]] = defaultdict(list)
        self._by_group: dict[_Place, list[Entity]] = defaultdict(list)
        self._dependents: dict[_Place, list[_Need]] = defaultdict(list)
        self._opponents: dict[_Place, list[_Ban]] = defaultdict(list)
        self.active = 0
        self.ramp_starts: dict[tuple[str, str, str], int] = defaultdict(int)
        self.memo: dict[object, object] = {}
        self._graph: ProductGraph | None = None
        self._in_flight: dict[str, list[VersionOrNone]] = defaultdict(list)
        self._windows: dict[tuple[str, str, str, WindowClass], Window] = {}
        for entity in self.entities.values():
            self._add(entity)

    def _add(self, entity: Entity) -> None:
        self.by_product[entity.product].append(entity)
        for group in groups_of(entity):
            self._by_group[entity.product, group].append(entity)
        self._add_needs(entity, entity.state.version)
        if (plan := entity.state.active_plan) is not None:
            self._start(entity, plan.to.version)

    def _add_needs(self, entity: Entity, version: VersionOrNone) -> None:
        release = self.release(entity, version)
        if release is None:
            return
        for dependency in release.dependencies:
            for group in searched_by(entity, dependency.product):
                self._dependents[dependency.product, group].append((entity, dependency))
        for incompatibility in release.incompatibilities:
            for group in groups_of(entity):
                self._opponents[incompatibility.product, group].append((entity, incompatibility))

    def providers(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product that an entity sees, without itself."""
        searched = searched_by(entity, product)
        if ALL_GROUPS in searched:
            return _others(self.by_product.get(product, ()), entity)
        return _others(
            _together([self._by_group.get((product, one), ()) for one in searched]), entity
        )

    def neighbours(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product in the groups of an entity, without itself."""
        lists = [self._by_group.get((product, one), ()) for one in groups_of(entity)]
        return _others(_together(lists), entity)

    def dependents(self, entity: Entity) -> Sequence[tuple[Entity, Dependency]]:
        """Return the installed entities, or plans under way, that need an entity's product and see
        it, each with what it needs."""
        groups = (*groups_of(entity), ALL_GROUPS)
        return _together([self._dependents.get((entity.product, one), ()) for one in groups])

    def opponents(self, entity: Entity) -> Sequence[tuple[Entity, Incompatibility]]:
        """Return what is installed in the groups of an entity and is incompatible with versions of
        its product."""
        groups = groups_of(entity)
        return _together([self._opponents.get((entity.product, one), ()) for one in groups])

    def _start(self, entity: Entity, version: VersionOrNone) -> None:
        self.active += 1
        self._in_flight[entity.name].append(version)
        if version != entity.state.version:
            self._add_needs(entity, version)

    def issue(self, entity: Entity, version: VersionOrNone) -> None:
        """Record that a plan to a version (None: uninstalled) is issued."""
        self._start(entity, version)
        self.memo.clear()

    @property
    def graph(self) -> ProductGraph:
        """The required dependencies between the products of the entities to be installed."""
        if self._graph is None:
            requires: dict[str, set[str]] = defaultdict(set)
            installed: set[str] = set()
            for entity in self.entities.values():
                if entity.state.installed:
                    installed.add(entity.product)
                release = self._intended(entity)
                for one in release.dependencies if release else ():
                    if not one.optional and not ignores(entity, one.product):
                        requires[entity.product].add(one.product)
            self._graph = ProductGraph(requires, installed)
        return self._graph

    def _intended(self, entity: Entity) -> Release | None:
        """Return the release that an entity has, or the newest that it could be installed with."""
        if entity.state.installed or entity.settings is None or entity.settings.uninstall:
            return self.release(entity, entity.state.version)
        catalogue = self.catalogue(entity)
        usable = (
            release
            for release in (catalogue.channel(self.channel(entity)) if catalogue else ())
            if catalogue and not catalogue.recalls(release.version)
        )
        return next(usable, None)

    def tolerated(self, entity: Entity) -> frozenset[str]:
        """Return the products that need an entity's product in turn and are to be installed, too:
        without them in place the entity may be installed, or a cycle never could be."""
        return frozenset(
            product
            for product in self.graph.cycle(entity.product)
            if any(
                one.settings is not None and not one.settings.uninstall
                for one in self.providers(entity, product)
            )
        )

    def catalogue(self, entity: Entity) -> Catalogue | None:
        return self.catalogues.get(entity.product)

    def release(self, entity: Entity, version: VersionOrNone) -> Release | None:
        """Return what the catalogue has of a version of an entity's product."""
        catalogue = self.catalogues.get(entity.product)
        return catalogue.releases.get(version) if catalogue and version is not None else None

    def recalls(self, entity: Entity, version: VersionOrNone) -> tuple[Recall, ...]:
        catalogue = self.catalogues.get(entity.product)
        return catalogue.recalls(version) if catalogue and version is not None else ()

    def channel(self, entity: Entity) -> str:
        own = entity.settings.release_channel if entity.settings else None
        return own or self.settings.release_channel

    def versions(self, entity: Entity) -> tuple[VersionOrNone, ...]:
        """Return the version of an entity now, and those that plans under way lead to."""
        return (entity.state.version, *self._in_flight.get(entity.name, ()))

    def window(self, entity: Entity, wanted: WindowClass) -> Window:
        """Return when changes of a class may begin for an entity, overrides aside.

        Without a window of the product: the entity's, else the environment's of that class; changes
        without downtime may also begin in the window for downtime. With one: the product's, and
        within it for downtime that of the entity or environment.
        """
        settings = entity.settings
        down = (settings.downtime_window if settings else None) or self.settings.downtime_window
        quiet = (
            settings.no_downtime_window if settings else None
        ) or self.settings.no_downtime_window
        key = (entity.product, down, quiet, wanted)
        if key not in self._windows:
            self._windows[key] = self._resolved(*key)
        return self._windows[key]

    def _resolved(self, product: str, down: str, quiet: str, wanted: WindowClass) -> Window:
        downtime = self.settings.window(down)
        own = downtime
        if wanted is WindowClass.NO_DOWNTIME:
            own = union(self.settings.window(quiet), downtime)
        catalogue = self.catalogues.get(product)
        products = catalogue.product.window if catalogue else None
        if products is None or self.settings.override_product_maintenance_windows:
            return own
        strict = self.settings.strict_environment_windows
        limited = strict or wanted is WindowClass.DOWNTIME
        return intersection(products, own) if limited else products

    def product_window(self, product: str) -> Window:
        catalogue = self.catalogues.get(product)
        window = catalogue.product.window if catalogue else None
        return window or ALL_TIME


_Item = TypeVar("_Item")


def _together(lists: Sequence[Sequence[_Item]]) -> Sequence[_Item]:
    """Return the items of lists, each item once."""
    filled = [one for one in lists if one]
    if len(filled) < 2:
        return filled[0] if filled else ()
    return tuple({id(item): item for one in filled for item in one}.values())


def _others(entities: Sequence[Entity], entity: Entity) -> Sequence[Entity]:
    return [one for one in entities if one.name != entity.name]


def groups_of(entity: Entity) -> tuple[str, ...]:
    return (entity.settings.dependency_groups if entity.settings else ()) or DEFAULT_GROUPS


def searched_by(entity: Entity, product: str) -> tuple[str, ...]:
    """Return the groups in which an entity looks for a product."""
    overrides = entity.settings.dependency_group_overrides if entity.settings else {}
    return overrides.get(product) or groups_of(entity)


def ignores(entity: Entity, product: str) -> bool:
    return entity.settings is not None and product in entity.settings.ignored_dependencies
