"""What an environment's state becomes: by documents, decisions, and the ends of plans."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from temporal_plans.domain.fleets.entities import Entity, EntityState
from temporal_plans.domain.fleets.environment import Environment, Snapshot
from temporal_plans.domain.fleets.plans import (
    ActivePlan,
    ActiveStatus,
    EndStatus,
    EntityConfig,
    EntityVersion,
)
from temporal_plans.domain.fleets.progress import ended
from temporal_plans.domain.fleets.standing import Pass, after_pass
from temporal_plans.loading.fleets.snapshots import revision
from temporal_plans.messages.fleets import (
    PLANS_KEPT,
    ChangeOrder,
    DeclaredEnvironment,
    EnvironmentDeclaration,
    EnvironmentState,
    IssuedPlan,
    KnownProduct,
    PlanRow,
    fleet_plan_id,
)


def applied(
    state: EnvironmentState | None,
    declaration: EnvironmentDeclaration,
    declared: DeclaredEnvironment,
) -> EnvironmentState:
    """Return the state after a document: entities that it does not name any more are unmanaged, and
    forgotten when nothing of them is installed."""
    former = state.environment if state else Environment(name=declaration.name)
    known = {one.name: one for one in former.entities}
    entities: list[Entity] = []
    for name in sorted({*known, *declared.entities}):
        entity = known.get(name, Entity(name=name))
        settings = declared.entities.get(name)
        if settings is None and not _is_there(entity.state):
            continue
        product = entity.product or None
        kept = entity.state if settings else entity.state.but(product=product)
        entities.append(Entity(name=name, settings=settings, state=kept))
    environment = former.but(settings=declared.settings, entities=tuple(entities))
    base = state or EnvironmentState(declaration=declaration, environment=environment)
    names = {one.name for one in entities}
    changed = base.but(
        declaration=declaration,
        environment=environment,
        until=declared.until,
        standings={name: one for name, one in base.standings.items() if name in names},
    )
    return with_products(with_configs(changed))


def _is_there(state: EntityState) -> bool:
    return state.installed or state.active_plan is not None


def with_products(state: EnvironmentState) -> EnvironmentState:
    """Return the state with the catalogues of its entities' products only."""
    used = products_of(state)
    return state.but(
        products={name: one for name, one in state.products.items() if name in used},
        stale={
            name: state.stale.get(name, 0)
            for name in sorted(used)
            if name in state.stale or name not in state.products
        },
    )


def products_of(state: EnvironmentState) -> set[str]:
    """Return the products of the entities that an environment has."""
    return {one.product for one in state.environment.entities if one.product}


def with_configs(state: EnvironmentState) -> EnvironmentState:
    """Return the state with the configurations that may still be needed."""
    declared = {
        revision(block.overrides): block.overrides
        for entity in state.declaration.entities.values()
        for block in entity.config.values()
    }
    if state.declaration.config is not None:
        declared[revision(state.declaration.config)] = state.declaration.config
    needed = {one for entity in state.environment.entities for one in _revisions(entity.state)}
    kept = {key: one for key, one in state.configs.items() if key in needed}
    return state.but(configs={**kept, **declared})


def _revisions(state: EntityState) -> Iterable[str]:
    versions = [state.current]
    for plan in (state.active_plan, state.last_plan):
        if plan is not None:
            versions += [plan.to, plan.before]
    for version in versions:
        config = version.config
        yield from (one for one in (config.revision, config.environment_revision) if one)


def snapshot_of(state: EnvironmentState) -> Snapshot:
    """Return what a decision needs."""
    products = tuple(state.products[name].product for name in sorted(state.products))
    return Snapshot.model_construct(environment=state.environment, products=products)


def decided(state: EnvironmentState, done: Pass) -> EnvironmentState:
    """Return the state after a decision: what it issues waits to be started."""
    environment = after_pass(state.environment, done, done.at)
    issued = dict(state.issued)
    for entity in environment.entities:
        plan = entity.state.active_plan
        if plan is None:
            continue
        if entity.name in done.issued and entity.settings is not None:
            settings = entity.settings
            issued[entity.name] = IssuedPlan(
                number=plan.number, kind=settings.kind, product=settings.product
            )
        elif plan.status is ActiveStatus.CANCELLING and entity.name in issued:
            former = issued[entity.name]
            issued[entity.name] = former.but(ending=former.ending or "it is cancelled")
    return state.but(
        environment=environment,
        issued=issued,
        standings={**state.standings, **done.standings},
        next_wakeup=done.next_wakeup,
    )


def order_of(state: EnvironmentState, name: str, owner: str, starter: str) -> ChangeOrder | None:
    """Return the order of the running plan of an entity; None when none runs."""
    entity, issued = entity_of(state, name), state.issued[name]
    plan = entity.state.active_plan if entity else None
    if plan is None or plan.issued_at is None:
        return None
    return ChangeOrder(
        environment=state.environment.name,
        entity=name,
        entity_kind=issued.kind,
        product=issued.product,
        number=plan.number,
        kind=plan.kind,
        intent=plan.intent,
        before=plan.before,
        to=plan.to,
        config=_config(state.configs, plan.to.config.revision),
        environment_config=_environment_config(state, plan.to.config),
        owner=owner,
        starter=starter,
        at=plan.issued_at,
    )


def _config(configs: Mapping[str, dict[str, Any]], wanted: str | None) -> dict[str, Any]:
    return configs.get(wanted, {}) if wanted else {}


def _environment_config(state: EnvironmentState, config: EntityConfig) -> dict[str, Any]:
    return _config(state.configs, config.environment_revision)


def with_active(state: EnvironmentState, name: str, status: ActiveStatus) -> EnvironmentState:
    """Return the state with another status of an entity's running plan."""

    def changed(entity: Entity) -> Entity:
        plan = entity.state.active_plan
        if entity.name != name or plan is None:
            return entity
        return entity.but(state=entity.state.but(active_plan=plan.but(status=status)))

    entities = tuple(changed(one) for one in state.environment.entities)
    return state.but(environment=state.environment.but(entities=entities))


def with_issued(state: EnvironmentState, name: str, **changes: Any) -> EnvironmentState:
    """Return the state with changes of the record of an entity's plan; without one as it is."""
    if name not in state.issued:
        return state
    return state.but(issued={**state.issued, name: state.issued[name].but(**changes)})


def without_issued(state: EnvironmentState, name: str) -> EnvironmentState:
    """Return the state without the record of an entity's plan."""
    return state.but(issued={key: one for key, one in state.issued.items() if key != name})


def plan_ended(
    state: EnvironmentState,
    name: str,
    status: EndStatus,
    now: datetime,
    *,
    changed: bool,
    errors: tuple[str, ...] = (),
    reached: EntityVersion | None = None,
) -> EnvironmentState:
    """Return the state after the running plan of an entity has ended. A plan that did not succeed
    and had begun its change has left the new state, as far as anybody knows; but an uninstall has
    not uninstalled."""
    entity = entity_of(state, name)
    plan = entity.state.active_plan if entity else None
    if plan is None:
        return without_issued(state, name)
    if reached is None and status is not EndStatus.SUCCEEDED:
        reached = plan.to if changed and plan.to.version is not None else plan.before
    row = row_of(state, name, plan).but(status=str(status), ended_at=now, errors=errors)
    environment = ended(state.environment, name, status, now, reached=reached, errors=errors[:20])
    after = state.but(
        environment=environment,
        issued={key: one for key, one in state.issued.items() if key != name},
        history=(*state.history, row)[-PLANS_KEPT:],
    )
    return without_forgotten(after)


def without_forgotten(state: EnvironmentState) -> EnvironmentState:
    """Return the state without entities that have no settings and nothing installed."""
    entities = tuple(
        one
        for one in state.environment.entities
        if one.settings is not None or _is_there(one.state)
    )
    if len(entities) == len(state.environment.entities):
        return state
    names = {one.name for one in entities}
    kept = {name: one for name, one in state.standings.items() if name in names}
    changed = state.but(environment=state.environment.but(entities=entities), standings=kept)
    return with_products(changed)


def row_of(state: EnvironmentState, name: str, plan: ActivePlan) -> PlanRow:
    """Return the running plan of an entity as a row of the list of plans."""
    return PlanRow(
        entity=name,
        number=plan.number,
        plan_id=fleet_plan_id(state.environment.name, name, plan.number),
        kind=plan.kind,
        intent=plan.intent,
        from_version=plan.before.version,
        to=plan.to.version,
        status=str(plan.status),
        issued_at=plan.issued_at,
    )


def entity_of(state: EnvironmentState, name: str) -> Entity | None:
    return next((one for one in state.environment.entities if one.name == name), None)


def with_entity_state(state: EnvironmentState, name: str, **changes: Any) -> EnvironmentState:
    """Return the state with changes of what is known of an entity."""
    entities = tuple(
        one.but(state=one.state.but(**changes)) if one.name == name else one
        for one in state.environment.entities
    )
    return state.but(environment=state.environment.but(entities=entities))


def announced(
    state: EnvironmentState, name: str, number: int, *, deleted: bool
) -> EnvironmentState:
    """Return the state after a product has announced a revision, or its end: one that is deleted
    knows nothing of the environment when it is there again."""
    known = state.products.get(name)
    if name not in products_of(state):
        return state
    if deleted:
        following = tuple(one for one in state.following if one != name)
        return state.but(following=following, stale={**state.stale, name: 0})
    if known is not None and number <= known.revision:
        return state
    return state.but(stale={**state.stale, name: max(number, state.stale.get(name, 0))})


def with_product(state: EnvironmentState, name: str, known: KnownProduct) -> EnvironmentState:
    """Return the state with the catalogue of a product that it uses."""
    if name not in products_of(state):
        return state
    return state.but(
        products={**state.products, name: known},
        following=tuple(sorted({*state.following, name})),
        stale={
            one: number
            for one, number in state.stale.items()
            if one != name or number > known.revision
        },
    )
