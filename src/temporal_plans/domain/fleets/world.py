"""A snapshot with indexes, and what a pass of decisions has issued so far.

Whoever decides again and again keeps the world, and changes it to later snapshots: that costs what
has changed, and says whose answers may be others now.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, TypeVar

from temporal_plans.domain.fleets.entities import ALL_GROUPS, DEFAULT_GROUPS, Entity
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.graph import ProductGraph
from temporal_plans.domain.fleets.install_graph import InstallGraph, Share
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.recalls import Recall, covering
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.suppressions import Suppression, WindowClass
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.windows import ALL_TIME, Window, intersection, union

VersionOrNone = str | None
_Item = TypeVar("_Item")
_Rule = TypeVar("_Rule", Dependency, Incompatibility)
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

    @cached_property
    def related(self) -> frozenset[str]:
        """The products that any release needs, or is incompatible with."""
        releases = self.product.releases
        needed = {one.product for release in releases for one in release.dependencies}
        banned = {one.product for release in releases for one in release.incompatibilities}
        return frozenset(needed | banned)

    def relates_as(self, other: "Catalogue") -> bool:
        """Return whether every release here is in another catalogue with the same relations."""
        return all(
            (found := other.releases.get(version)) is not None
            and found.dependencies == release.dependencies
            and found.incompatibilities == release.incompatibilities
            for version, release in self.releases.items()
        )

    def ramp(self, channel: str, version: str) -> Ramp | None:
        ramps = self.product.ramps
        return next((r for r in ramps if (r.channel, r.version) == (channel, version)), None)


def _age(release: Release) -> tuple[tuple[int, ...], float, str]:
    version = parse_version(release.version)
    published = release.published_at.timestamp() if release.published_at else 0.0
    return (version.key if version and version.key else (), published, release.version)


_INDEX_AGAIN = 4
"""When more than this part of the entities has changed, all are indexed again: that is faster."""


class _Outside(NamedTuple):
    """What others see of an entity."""

    product: str
    managed: bool
    uninstall: bool
    groups: tuple[str, ...]
    overrides: dict[str, tuple[str, ...]]
    ignored: tuple[str, ...]
    channel: str | None
    namespace: str | None
    version: VersionOrNone
    target: VersionOrNone
    running: bool

    @classmethod
    def of(cls, entity: Entity) -> "_Outside":
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


class World:
    """A snapshot, indexed. ``issue`` records what a pass issues, so that later proposals see it;
    after the ``trial`` that is forgotten."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._index(snapshot)

    def _index(self, snapshot: Snapshot) -> None:
        self._set_rules(snapshot.environment)
        self.catalogues = {one.id: Catalogue(one) for one in snapshot.products}
        self.entities = {
            one.name: one for one in sorted(snapshot.environment.entities, key=lambda one: one.name)
        }
        self.by_product: dict[str, list[Entity]] = defaultdict(list)
        self._by_group: dict[_Place, list[Entity]] = defaultdict(list)
        self._by_namespace: dict[str, set[str]] = defaultdict(set)
        self._dependents: dict[_Place, list[_Need]] = defaultdict(list)
        self._opponents: dict[_Place, list[_Ban]] = defaultdict(list)
        self.active = 0
        self.ramp_starts: dict[tuple[str, str, str], int] = defaultdict(int)
        self.memo: dict[object, object] = {}
        self._graph: InstallGraph | None = None
        self._in_flight: dict[str, list[VersionOrNone]] = defaultdict(list)
        self._issued: list[Callable[[], object]] = []
        for entity in self.entities.values():
            self._add(entity)

    def _set_rules(self, environment: Environment) -> None:
        self.environment = environment
        self.settings = environment.settings
        self.facts = environment.facts
        self._set_suppressions(environment.suppressions)
        self.overrides = tuple(sorted(environment.overrides, key=lambda one: one.id))
        self._windows: dict[tuple[str, str, str, WindowClass], Window] = {}

    def _set_suppressions(self, suppressions: Iterable[Suppression]) -> None:
        self.suppressions = tuple(sorted(suppressions, key=_suppression_order))
        self._whole = tuple(one for one in self.suppressions if one.entity is None)
        self._stops: dict[str, list[Suppression]] = defaultdict(list)
        for one in self.suppressions:
            if one.entity is not None:
                self._stops[one.entity].append(one)

    def suppressions_of(self, entity: Entity) -> Sequence[Suppression]:
        """Return the suppressions of an entity and of the whole environment, by their start."""
        own = self._stops.get(entity.name)
        if not own:
            return self._whole
        return sorted((*own, *self._whole), key=_suppression_order) if self._whole else own

    # --- the index --------------------------------------------------------------------------------

    def _add(self, entity: Entity) -> None:
        _insert(self.by_product[entity.product], entity, _name)
        for group in groups_of(entity):
            _insert(self._by_group[entity.product, group], entity, _name)
        if entity.settings is not None and entity.settings.namespace is not None:
            self._by_namespace[entity.settings.namespace].add(entity.name)
        self._add_needs(entity, entity.state.version)
        if (plan := entity.state.active_plan) is not None:
            self._start(entity, plan.to.version)

    def _remove(self, entity: Entity) -> None:
        _drop(self.by_product[entity.product], entity)
        for group in groups_of(entity):
            _drop(self._by_group[entity.product, group], entity)
        if entity.settings is not None and entity.settings.namespace is not None:
            self._by_namespace[entity.settings.namespace].discard(entity.name)
        self._remove_needs(entity, entity.state.version)
        if (plan := entity.state.active_plan) is not None:
            self.active -= 1
            self._in_flight.pop(entity.name, None)
            self._remove_needs(entity, plan.to.version)

    def _needs(
        self, entity: Entity, release: Release | None
    ) -> Iterator[tuple[list[_Need], _Need]]:
        """Yield what an entity with a release needs, each with the list that it is in."""
        for dependency in release.dependencies if release else ():
            for group in searched_by(entity, dependency.product):
                yield self._dependents[dependency.product, group], (entity, dependency)

    def _bans(self, entity: Entity, release: Release | None) -> Iterator[tuple[list[_Ban], _Ban]]:
        """Yield what an entity with a release is incompatible with, each with its list."""
        for incompatibility in release.incompatibilities if release else ():
            for group in groups_of(entity):
                yield self._opponents[incompatibility.product, group], (entity, incompatibility)

    def _add_needs(self, entity: Entity, version: VersionOrNone) -> None:
        release = self.release(entity, version)
        for needs, need in self._needs(entity, release):
            _insert(needs, need, _holder)
        for bans, ban in self._bans(entity, release):
            _insert(bans, ban, _holder)

    def _remove_needs(self, entity: Entity, version: VersionOrNone) -> None:
        release = self.release(entity, version)
        for needs, _ in self._needs(entity, release):
            needs[:] = [one for one in needs if one[0] is not entity]
        for bans, _ in self._bans(entity, release):
            bans[:] = [one for one in bans if one[0] is not entity]

    # --- changes ----------------------------------------------------------------------------------

    def change_to(self, snapshot: Snapshot) -> frozenset[str]:
        """Change to a later snapshot of the environment; returns the names of the entities whose
        answers may be others now. What is the same object in both is taken as unchanged."""
        entities = snapshot.environment.entities
        changed = [one for one in entities if self.entities.get(one.name) is not one]
        if len(changed) > max(len(self.entities) // _INDEX_AGAIN, 1):
            self._index(snapshot)
            return frozenset(self.entities)
        concerned = self._change_rules(snapshot.environment)
        for product in snapshot.products:
            known = self.catalogues.get(product.id)
            if known is None or known.product is not product:
                concerned |= self.change_product(product)
        for entity in changed:
            concerned |= self.change_entity(entity)
        if len(entities) != len(self.entities):
            for name in set(self.entities) - {one.name for one in entities}:
                concerned |= self.remove_entity(name)
        return frozenset(concerned & self.entities.keys())

    def change_entity(self, entity: Entity) -> set[str]:
        """Put an entity in the place of the one of its name, if there is one; returns the names of
        the entities whose answers may be others now."""
        return self._exchange(self.entities.get(entity.name), entity)

    def remove_entity(self, name: str) -> set[str]:
        """Remove an entity; returns the names of those whose answers may be others now."""
        return self._exchange(self.entities[name], None)

    def _exchange(self, old: Entity | None, new: Entity | None) -> set[str]:
        name = new.name if new else old.name if old else ""
        before = _Outside.of(old) if old else None
        after = _Outside.of(new) if new else None
        if before == after and old is not None and new is not None:
            self._swap(old, new)
            return {name} | self._regraphed([name])
        active = self.active
        concerned = {name}
        for one in (old, new):
            if one is not None:
                concerned |= self.neighbours_of(one)
        if old is not None:
            self._remove(old)
        if new is not None:
            _put_sorted(self.entities, name, new)
            self._add(new)
        else:
            del self.entities[name]
        return concerned | self._regraphed([name]) | self._limited(active)

    def _swap(self, old: Entity, new: Entity) -> None:
        """Put an entity in the place of one that others see as the same."""
        self.entities[new.name] = new
        lists = [self.by_product[new.product]]
        lists += [self._by_group[new.product, group] for group in groups_of(new)]
        for items in lists:
            items[:] = [new if one is old else one for one in items]
        plan = new.state.active_plan
        for version in {new.state.version, plan.to.version if plan else None}:
            release = self.release(new, version)
            for needs, need in self._needs(new, release):
                _renew(needs, old, need)
            for bans, ban in self._bans(new, release):
                _renew(bans, old, ban)

    def change_product(self, product: Product) -> set[str]:
        """Put a product in the place of the one of its id, if there is one; returns the names of
        the entities whose answers may be others now."""
        old, new = self.catalogues.get(product.id), Catalogue(product)
        own = list(self.by_product.get(product.id, ()))
        concerned = {one.name for one in own}
        if old is None or not old.relates_as(new):
            for one in own:
                concerned |= self.neighbours_of(one)
        moved = [one for one in own if _relations(old, one) != _relations(new, one)]
        for one in moved:
            concerned |= self.neighbours_of(one)
            self._remove(one)
        self.catalogues[product.id] = new
        for one in moved:
            self._add(one)
        for one in moved:
            concerned |= self.neighbours_of(one)
        if old is None or old.product.window != product.window:
            self._windows.clear()
        return concerned | self._regraphed([one.name for one in own])

    def _change_rules(self, environment: Environment) -> set[str]:
        """Change everything but entities; returns the names of the entities concerned."""
        old = self.environment
        everything = old.settings != environment.settings or old.facts != environment.facts
        changed = [one.entity for one in _changed(old.suppressions, environment.suppressions)]
        changed += [one.entity for one in _changed(old.overrides, environment.overrides)]
        if everything or changed:
            self._set_rules(environment)
            self._graph = None if everything else self._graph
        else:
            self.environment = environment
        if everything or None in changed:
            return set(self.entities)
        return {name for name in changed if name is not None}

    def neighbours_of(self, entity: Entity) -> set[str]:
        """Return the names of the entities that look at an entity: those of products that any
        release of either needs or is incompatible with, and of its own product and its namespace
        those that may be uninstalled."""
        found: set[str] = set()
        for product in self._related(entity.product):
            for other in self.by_product.get(product, ()):
                if _see_each_other(entity, other):
                    found.add(other.name)
        found |= {one.name for one in self.by_product.get(entity.product, ()) if _may_leave(one)}
        if entity.settings is not None and entity.settings.namespace is not None:
            found |= self._by_namespace.get(entity.settings.namespace, set())
        return found

    def _related(self, product: str) -> set[str]:
        catalogue = self.catalogues.get(product)
        needed = set(catalogue.related) if catalogue else set[str]()
        return needed | {name for name, one in self.catalogues.items() if product in one.related}

    def _limited(self, active: int) -> set[str]:
        """Return all entities when another number of plans runs, and the bound is reached now or
        was before."""
        limit = self.settings.max_active_plans
        if limit is None or active == self.active or max(active, self.active) < limit:
            return set()
        return set(self.entities)

    # --- a pass -----------------------------------------------------------------------------------

    @contextmanager
    def trial(self, suppressions: Sequence[Suppression]) -> Generator[None]:
        """Judge under these suppressions; what is issued meanwhile is forgotten at the end."""
        own = suppressions is not self.environment.suppressions
        self.memo.clear()
        if own:
            self._set_suppressions(suppressions)
        try:
            yield
        finally:
            while self._issued:
                self._issued.pop()()
            self.ramp_starts.clear()
            if own:
                self._set_suppressions(self.environment.suppressions)

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
        self.active += 1
        self._in_flight[entity.name].append(version)
        self._issued.append(lambda: self._retract(entity))
        if version != entity.state.version:
            release = self.release(entity, version)
            for needs, need in self._needs(entity, release):
                needs.append(need)
                self._issued.append(needs.pop)
            for bans, ban in self._bans(entity, release):
                bans.append(ban)
                self._issued.append(bans.pop)
        self.memo.clear()

    def _retract(self, entity: Entity) -> None:
        self.active -= 1
        self._in_flight[entity.name].pop()
        if not self._in_flight[entity.name]:
            del self._in_flight[entity.name]

    @property
    def graph(self) -> ProductGraph:
        """The required dependencies between the products of the entities to be installed."""
        if self._graph is None:
            self._graph = InstallGraph(
                {one.name: self._share(one) for one in self.entities.values()}
            )
        return self._graph.graph

    def _share(self, entity: Entity) -> Share:
        release = self._intended(entity)
        needed = frozenset(
            one.product
            for one in (release.dependencies if release else ())
            if not one.optional and not ignores(entity, one.product)
        )
        return Share(entity.product, needed, entity.state.installed)

    def _regraphed(self, names: Sequence[str]) -> set[str]:
        """Compute again what some entities add to the graph; returns those that are not installed
        and whose products are in other cycles now."""
        if self._graph is None:
            return set()
        found = ((name, self.entities.get(name)) for name in names)
        shares = ((name, self._share(one) if one else None) for name, one in found)
        before, changed = self._graph.change(shares)
        if not changed:
            return set()
        after = self._graph.graph
        return {
            one.name
            for one in self.entities.values()
            if not one.state.installed and before.cycle(one.product) != after.cycle(one.product)
        }

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


def _name(entity: Entity) -> str:
    return entity.name


def _holder(item: tuple[Entity, object]) -> str:
    return item[0].name


def _suppression_order(one: Suppression) -> tuple[datetime, str]:
    return (one.start, one.id)


def _insert(items: list[_Item], item: _Item, key: Callable[[_Item], str]) -> None:
    """Insert an item into a sorted list, after those with the same key."""
    if not items or key(items[-1]) <= key(item):
        items.append(item)
    else:
        insort(items, item, key=key)


def _renew(items: list[tuple[Entity, _Rule]], old: Entity, item: tuple[Entity, _Rule]) -> None:
    """Put an item in the place of the same rule of an entity that was exchanged."""
    for index, one in enumerate(items):
        if one[0] is old and one[1] is item[1]:
            items[index] = item


def _drop(items: list[Entity], entity: Entity) -> None:
    items[:] = [one for one in items if one is not entity]


def _put_sorted(entities: dict[str, Entity], name: str, entity: Entity) -> None:
    """Put an entity where its name belongs."""
    in_order = name in entities or not entities or next(reversed(entities)) < name
    entities[name] = entity
    if not in_order:
        ordered = {one: entities[one] for one in sorted(entities)}
        entities.clear()
        entities.update(ordered)


def _relations(
    catalogue: Catalogue | None, entity: Entity
) -> list[tuple[tuple[Dependency, ...], tuple[Incompatibility, ...]] | None]:
    """Return what the version of an entity needs and bans, and that of its running plan."""
    plan = entity.state.active_plan
    found: list[tuple[tuple[Dependency, ...], tuple[Incompatibility, ...]] | None] = []
    for version in (entity.state.version, plan.to.version if plan else None):
        release = catalogue.releases.get(version) if catalogue and version is not None else None
        found.append((release.dependencies, release.incompatibilities) if release else None)
    return found


def _changed(before: Sequence[_Item], after: Sequence[_Item]) -> list[_Item]:
    """Return what is in one sequence and not in the other."""
    if before is after:
        return []
    same = {id(one) for one in before} & {id(one) for one in after}
    old = [one for one in before if id(one) not in same]
    new = [one for one in after if id(one) not in same]
    return [*(one for one in old if one not in new), *(one for one in new if one not in old)]


def _see_each_other(one: Entity, other: Entity) -> bool:
    """Return whether either finds the other among its providers, or they share a group."""
    here, there = set(groups_of(one)), set(groups_of(other))
    if here & there:
        return True
    sought = {*searched_by(one, other.product)}
    seeking = {*searched_by(other, one.product)}
    return ALL_GROUPS in sought | seeking or bool(sought & there) or bool(seeking & here)


def _may_leave(entity: Entity) -> bool:
    last = entity.state.last_plan
    marked = entity.settings is not None and entity.settings.uninstall
    return marked or (last is not None and last.before.version is None)


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
