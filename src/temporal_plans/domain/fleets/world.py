"""A snapshot with indexes, and what a pass of decisions has issued so far.

Whoever decides again and again keeps the world, and changes it to later snapshots: that costs what
has changed, and says whose answers may be others now.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from temporal_plans.domain.fleets.catalogue import Catalogue
from temporal_plans.domain.fleets.change_windows import ChangeWindows
from temporal_plans.domain.fleets.dependency_groups import ignores, see_each_other
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.entity_index import EntityIndex
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.graph import ProductGraph
from temporal_plans.domain.fleets.install_graph import InstallGraph, Share
from temporal_plans.domain.fleets.outside_view import OutsideView
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.relation_index import RelationIndex
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.stops import Stops
from temporal_plans.domain.fleets.suppressions import Suppression, WindowClass
from temporal_plans.domain.fleets.windows import ALL_TIME, Window

VersionOrNone = str | None
_Item = TypeVar("_Item")

_INDEX_AGAIN = 4
"""When more than this part of the entities has changed, all are indexed again: that is faster."""


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
        self._placed = EntityIndex()
        self._relations = RelationIndex()
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
        self.stops = Stops(environment.suppressions)
        self.overrides = tuple(sorted(environment.overrides, key=lambda one: one.id))
        self._windows = ChangeWindows(environment.settings)

    # --- the index --------------------------------------------------------------------------------

    def _add(self, entity: Entity) -> None:
        self._placed.add(entity)
        self._relations.add(entity, self.release(entity, entity.state.version))
        if (plan := entity.state.active_plan) is not None:
            self._start(entity, plan.to.version)

    def _remove(self, entity: Entity) -> None:
        self._placed.remove(entity)
        self._relations.remove(entity, self.release(entity, entity.state.version))
        if (plan := entity.state.active_plan) is not None:
            self.active -= 1
            self._in_flight.pop(entity.name, None)
            self._relations.remove(entity, self.release(entity, plan.to.version))

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
        before = OutsideView.of(old) if old else None
        after = OutsideView.of(new) if new else None
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
        self._placed.swap(old, new)
        plan = new.state.active_plan
        for version in {new.state.version, plan.to.version if plan else None}:
            self._relations.swap(old, new, self.release(new, version))

    def change_product(self, product: Product) -> set[str]:
        """Put a product in the place of the one of its id, if there is one; returns the names of
        the entities whose answers may be others now."""
        old, new = self.catalogues.get(product.id), Catalogue(product)
        own = list(self._placed.of(product.id))
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
            self._windows.forget()
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
            for other in self._placed.of(product):
                if see_each_other(entity, other):
                    found.add(other.name)
        found |= {one.name for one in self._placed.of(entity.product) if _may_leave(one)}
        if entity.settings is not None and entity.settings.namespace is not None:
            found |= self._placed.names_in(entity.settings.namespace)
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
            self.stops = Stops(suppressions)
        try:
            yield
        finally:
            while self._issued:
                self._issued.pop()()
            self.ramp_starts.clear()
            if own:
                self.stops = Stops(self.environment.suppressions)

    def providers(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product that an entity sees, without itself."""
        return self._placed.providers(entity, product)

    def neighbours(self, entity: Entity, product: str) -> Sequence[Entity]:
        """Return the entities of a product in the groups of an entity, without itself."""
        return self._placed.neighbours(entity, product)

    def dependents(self, entity: Entity) -> Sequence[tuple[Entity, Dependency]]:
        """Return the installed entities, or plans under way, that need an entity's product and see
        it, each with what it needs."""
        return self._relations.dependents(entity)

    def opponents(self, entity: Entity) -> Sequence[tuple[Entity, Incompatibility]]:
        """Return what is installed in the groups of an entity and is incompatible with versions of
        its product."""
        return self._relations.opponents(entity)

    def _start(self, entity: Entity, version: VersionOrNone) -> None:
        self.active += 1
        self._in_flight[entity.name].append(version)
        if version != entity.state.version:
            self._relations.add(entity, self.release(entity, version))

    def issue(self, entity: Entity, version: VersionOrNone) -> None:
        """Record that a plan to a version (None: uninstalled) is issued."""
        self.active += 1
        self._in_flight[entity.name].append(version)
        self._issued.append(lambda: self._retract(entity))
        if version != entity.state.version:
            release = self.release(entity, version)
            self._issued += self._relations.add_for_now(entity, release)
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
        release = self.intended(entity)
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

    def intended(self, entity: Entity) -> Release | None:
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

    def tolerates(self, entity: Entity, product: str) -> bool:
        """Return whether a product needs an entity's product in turn and is to be installed, too:
        without it in place the entity may be installed, or a cycle never could be."""
        return self.graph.share_cycle(entity.product, product) and any(
            one.settings is not None and not one.settings.uninstall
            for one in self.providers(entity, product)
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
        """Return when changes of a class may begin for an entity, overrides aside."""
        catalogue = self.catalogue(entity)
        return self._windows.of(entity, catalogue.product.window if catalogue else None, wanted)

    def product_window(self, product: str) -> Window:
        catalogue = self.catalogues.get(product)
        window = catalogue.product.window if catalogue else None
        return window or ALL_TIME


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


def _may_leave(entity: Entity) -> bool:
    last = entity.state.last_plan
    marked = entity.settings is not None and entity.settings.uninstall
    return marked or (last is not None and last.before.version is None)
