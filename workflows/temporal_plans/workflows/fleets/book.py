"""What an environment's state becomes: by documents, decisions, and the ends of plans."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from temporal_plans.domain.fleets.entities import Entity, EntityState, Health
from temporal_plans.domain.fleets.environment import (
    Connection,
    Environment,
    EnvironmentFacts,
    Snapshot,
)
from temporal_plans.domain.fleets.plans import (
    ActivePlan,
    ActiveStatus,
    EndStatus,
    EntityConfig,
    EntityVersion,
    Intent,
)
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.progress import ended
from temporal_plans.domain.fleets.promotion.ramps import head_start
from temporal_plans.domain.fleets.spokes import SpokeStanding
from temporal_plans.domain.fleets.standing import Pass, after_pass
from temporal_plans.domain.values.compressed import PAYLOAD_LIMIT
from temporal_plans.loading.fleets.snapshots import revision
from temporal_plans.messages.fleets.catalogues import KnownProduct
from temporal_plans.messages.fleets.declarations import DeclaredEnvironment, EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.messages.fleets.names import fleet_plan_id
from temporal_plans.messages.fleets.plans import PLANS_KEPT, ChangeOrder, IssuedPlan, PlanRow
from temporal_plans.messages.fleets.reports import EntityReport


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
    if declared.settings.spoke != former.settings.spoke:
        environment = environment.but(facts=_contact(environment, state.spoke if state else None))
    base = state or EnvironmentState(declaration=declaration, environment=environment)
    names = {one.name for one in entities}
    changed = base.but(
        declaration=declaration,
        environment=environment,
        until=declared.until,
        standings={name: one for name, one in base.standings.items() if name in names},
    )
    return with_products(with_configs(changed))


def _contact(environment: Environment, spoke: SpokeStanding | None) -> EnvironmentFacts:
    """Return the facts of an environment that has a spoke from now on, or none any more. Its
    connection is unknown until one registers."""
    if not environment.settings.spoke:
        return environment.facts.but(connection=Connection.CONNECTED, agent_seen_at=None)
    if spoke is None:
        return environment.facts.but(connection=Connection.UNKNOWN)
    return environment.facts.but(agent_seen_at=spoke.since if spoke.away else None)


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


def with_configs_once(state: EnvironmentState) -> EnvironmentState:
    """Return the state without the configurations that its document has: ``with_configs`` finds
    them there again."""
    blocks = (block for one in state.declaration.entities.values() for block in one.config.values())
    declared = {id(block.overrides) for block in blocks} | {id(state.declaration.config)}
    kept = {key: one for key, one in state.configs.items() if id(one) not in declared}
    return state.but(configs=kept)


def _revisions(state: EntityState) -> Iterable[str]:
    versions = [state.current]
    for plan in (state.active_plan, state.last_plan):
        if plan is not None:
            versions += [plan.to, plan.before]
    for version in versions:
        config = version.config
        yield from (one for one in (config.revision, config.environment_revision) if one)


def knows_catalogues(state: EnvironmentState) -> bool:
    """Return whether the catalogues of all products are known, and as new as they are announced: a
    dependent whose releases are unknown could not object, and a release that was recalled would be
    chosen."""
    return not (state.stale or products_of(state) - state.products.keys())


def snapshot_of(state: EnvironmentState) -> Snapshot:
    """Return what a decision needs."""
    products = tuple(state.products[name].product for name in sorted(state.products))
    return Snapshot.model_construct(environment=state.environment, products=products)


_ENTITY_SIZE = 100
"""Bytes of an entity, compressed: some more than usual."""


def fits(state: EnvironmentState) -> bool:
    """Return whether the entities and all catalogues fit into one payload: releases with many
    digests are hardly compressed."""
    entities = len(state.environment.entities) * _ENTITY_SIZE
    return entities + sum(one.size for one in state.products.values()) <= PAYLOAD_LIMIT


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
            by, reason = _ordered_by(state, entity.name, plan)
            issued[entity.name] = IssuedPlan(
                number=plan.number,
                kind=settings.kind,
                product=settings.product,
                spoke=spoke_of(state),
                by=by,
                reason=reason,
            )
        elif plan.status is ActiveStatus.CANCELLING and entity.name in issued:
            former = issued[entity.name]
            issued[entity.name] = former.but(ending=former.ending or "it is cancelled")
    return state.but(
        environment=environment,
        products=_with_ramps(state.products, done.ramps),
        issued=issued,
        standings={**state.standings, **done.standings},
        next_wakeup=done.next_wakeup,
    )


UNASSIGNED = "unassigned"
"""The spoke of a plan that was issued before any spoke has registered."""


def spoke_of(state: EnvironmentState) -> str:
    """Return the record of the spoke that carries out what is issued; empty without a spoke."""
    if not state.environment.settings.spoke:
        return ""
    return state.spoke.info.record if state.spoke else UNASSIGNED


def _ordered_by(state: EnvironmentState, name: str, plan: ActivePlan) -> tuple[str, str]:
    """Return who gave the command that a plan carries out, and why."""
    former = entity_of(state, name) if plan.intent is Intent.BREAK_GLASS else None
    command = former.state.command if former else None
    return (command.by, command.reason) if command else ("", "")


def _with_ramps(
    products: dict[str, KnownProduct], ramps: Mapping[str, tuple[Ramp, ...]]
) -> dict[str, KnownProduct]:
    """Return the products with what has started in their ramps."""
    if not ramps:
        return products
    changed = {
        name: products[name].but(product=products[name].product.but(ramps=ramps[name]))
        for name in ramps
        if name in products
    }
    return {**products, **changed}


def order_of(state: EnvironmentState, name: str, owner: str, starter: str) -> ChangeOrder | None:
    """Return the order of the running plan of an entity; None when none runs."""
    entity, issued = entity_of(state, name), state.issued[name]
    plan = entity.state.active_plan if entity else None
    if entity is None or plan is None or plan.issued_at is None:
        return None
    settings = state.environment.settings
    own = entity.settings.namespace if entity.settings else None
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
        cluster=settings.cluster,
        namespace=own or settings.namespace,
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
        if plan is None:
            return entity
        return entity.but(state=entity.state.but(active_plan=plan.but(status=status)))

    entities = tuple(
        changed(one) if one.name == name else one for one in state.environment.entities
    )
    return state.but(environment=state.environment.but(entities=entities))


def with_issued(state: EnvironmentState, name: str, **changes: Any) -> EnvironmentState:
    """Return the state with changes of the record of an entity's plan; without one as it is."""
    if name not in state.issued:
        return state
    return state.but(issued={**state.issued, name: state.issued[name].but(**changes)})


def plan_begun(state: EnvironmentState, name: str) -> EnvironmentState:
    """Return the state after the plan of an entity was started."""
    after = with_issued(state, name, started=True)
    entity = entity_of(after, name)
    active = entity.state.active_plan if entity else None
    issued = active is not None and active.status is ActiveStatus.ISSUED
    return with_active(after, name, ActiveStatus.RUNNING) if issued else after


def plan_lost(state: EnvironmentState, name: str, why: str) -> EnvironmentState:
    """Return the state after nothing is known any more of the plan of an entity."""
    return with_active(with_issued(state, name, lost=why), name, ActiveStatus.UNKNOWN)


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
    issued = state.issued.get(name)
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
        by=issued.by if issued else "",
        reason=issued.reason if issued else "",
    )


def running_row_of(state: EnvironmentState, name: str, plan: ActivePlan) -> PlanRow:
    """Return the row with what is known of the plan meanwhile."""
    issued = state.issued.get(name)
    if issued is None:
        return row_of(state, name, plan)
    errors = (issued.lost,) if issued.lost else ()
    return row_of(state, name, plan).but(progress=issued.progress, errors=errors)


def entity_of(state: EnvironmentState, name: str) -> Entity | None:
    return next((one for one in state.environment.entities if one.name == name), None)


def with_entity_state(state: EnvironmentState, name: str, **changes: Any) -> EnvironmentState:
    """Return the state with changes of what is known of an entity."""
    return with_entity_states(state, {name: changes})


def with_entity_states(
    state: EnvironmentState, changes: Mapping[str, Mapping[str, Any]]
) -> EnvironmentState:
    """Return the state with changes of what is known of some entities, by their names."""
    entities = tuple(
        one.but(state=one.state.but(**changes[one.name])) if one.name in changes else one
        for one in state.environment.entities
    )
    return state.but(environment=state.environment.but(entities=entities))


def with_report(state: EnvironmentState, report: EntityReport, now: datetime) -> EnvironmentState:
    """Return the state after the report of a running plan. The health that it tells is that of all
    replicas. What others have reported since the plan was issued goes before it: a service may be
    ready, and not do what it should."""
    entity = entity_of(state, report.entity)
    if entity is None:
        return state
    changes: dict[str, object] = {"reported_at": now}
    if report.health is not None and not _told_by_others(entity.state):
        changes |= {"health": report.health, "health_message": report.message}
        if report.health is Health.HEALTHY:
            changes["all_live"] = True
    return with_entity_state(state, report.entity, **changes)


def _told_by_others(known: EntityState) -> bool:
    """Return whether others have reported of an entity since its plan was issued."""
    since = known.active_plan.issued_at if known.active_plan else None
    if known.health is None or since is None or known.reported_at is None:
        return False
    return known.reported_at > since


def announced(
    state: EnvironmentState, name: str, number: int, *, deleted: bool
) -> EnvironmentState:
    """Return the state after a product has announced a revision, or its end: one that is deleted
    knows nothing of the environment when it is there again."""
    known = state.products.get(name)
    if name not in products_of(state):
        return state
    if deleted:
        return to_follow(state, name)
    if known is not None and number <= known.revision:
        return state
    return state.but(stale={**state.stale, name: max(number, state.stale.get(name, 0))})


def to_follow(state: EnvironmentState, name: str) -> EnvironmentState:
    """Return the state with a product that does not know of the environment: it is followed again
    before its catalogue is taken."""
    following = tuple(one for one in state.following if one != name)
    return state.but(following=following, stale={**state.stale, name: 0})


def begun_again(state: EnvironmentState, name: str, life: str) -> EnvironmentState:
    """Return the state after a product began again, which was terminated."""
    known = state.products.get(name)
    return to_follow(state, name) if known is not None and known.life != life else state


def is_another(state: EnvironmentState, name: str, answer: KnownProduct, announced: int) -> bool:
    """Return whether a product that the environment follows has begun again since: it is of another
    life, or, where one of the two lives is not known, at a lower revision than it had ``announced``
    before it was asked."""
    known = state.products.get(name)
    if known is not None and known.life and answer.life:
        return known.life != answer.life
    return answer.revision < max(announced, known.revision if known else 0)


def with_product(
    state: EnvironmentState, name: str, known: KnownProduct, asked: int = 0
) -> EnvironmentState:
    """Return the state with the catalogue of a product that it uses, which was fetched when the
    revision ``asked`` was announced: it is the newest one, whatever was announced."""
    if name not in products_of(state):
        return state
    known = known.but(product=_paced_here(state, name, known.product))
    return state.but(
        products={**state.products, name: known},
        following=tuple(sorted({*state.following, name})),
        stale={
            one: number
            for one, number in state.stale.items()
            if one != name or number > max(known.revision, asked)
        },
    )


def _paced_here(state: EnvironmentState, name: str, product: Product) -> Product:
    """Return a product whose ramps pace the entities of this environment alone: each environment
    counts what has started in it, over the same time, with a head start by its name, so that many
    environments do not all begin at once."""
    if not product.ramps:
        return product
    known = state.products.get(name)
    counted = {_ramp_key(one): one for one in known.product.ramps} if known else {}
    default = state.environment.settings.release_channel
    channels = Counter(
        one.settings.release_channel or default
        for one in state.environment.entities
        if one.settings is not None and one.product == name
    )
    ramps = tuple(
        one.but(
            entities=counted[_ramp_key(one)].entities
            if _ramp_key(one) in counted
            else max(1, channels[one.channel]),
            started=counted[_ramp_key(one)].started if _ramp_key(one) in counted else 0,
            head_start=head_start(f"{state.environment.name} {name} {one.channel} {one.version}"),
        )
        for one in product.ramps
    )
    return product.but(ramps=ramps)


def _ramp_key(one: Ramp) -> tuple[str, str, datetime]:
    return (one.channel, one.version, one.started_at)
