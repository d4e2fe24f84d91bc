"""Events of a fleet: what people and other systems do, and what a snapshot becomes by it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from pydantic import Field

from temporal_plans.domain.fleets.commands import command_refusal
from temporal_plans.domain.fleets.entities import Entity, Health
from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.fleets.names import (
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
    Text,
)
from temporal_plans.domain.fleets.plans import Command, CommandType
from temporal_plans.domain.fleets.promotion.by_hand import HandPromotion
from temporal_plans.domain.fleets.promotion.events import (
    PipelineChanged,
    PromotedByHand,
    Published,
    Recalled,
    Reverted,
    refusal_of,
)
from temporal_plans.domain.fleets.promotion.events import after as after_event
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal


class FleetEvent(Value):
    """Something that happens at a time of a simulation; exactly one thing each."""

    at: Time = Field(description="When.")
    environment: EnvironmentName | None = Field(
        default=None, description="The environment; not needed where there is only one."
    )
    entity: EntityName | None = Field(default=None, description="The entity that it is about.")
    product: ProductName | None = Field(default=None, description="The product that it is about.")
    publish: Release | None = Field(default=None, description="Publish a release of the product.")
    promote: dict[OrderableVersion, ShortName] | None = Field(
        default=None, description="Add releases of the product to channels, by hand."
    )
    pipeline: bool | None = Field(
        default=None, description="Enable or disable the pipeline of the product."
    )
    recall: Recall | None = Field(
        default=None, description="Recall releases of the product, or edit the recall of that id."
    )
    revert: ShortName | None = Field(
        default=None, description="Revert the recall of the product with this id."
    )
    suppress: Suppression | None = Field(default=None, description="Begin a suppression.")
    unsuppress: ShortName | None = Field(default=None, description="Remove a suppression.")
    override: WindowOverride | None = Field(default=None, description="Open the windows once.")
    command: CommandType | None = Field(
        default=None, description="Give a command to the entity; `version` and `reason` belong."
    )
    version: VersionText | None = Field(default=None, description="The version of `command`.")
    reason: Text = Field(default="", description="The reason of `command`.")
    health: Health | None = Field(
        default=None, description="Let the replicas of the entity be in this state from now on."
    )
    fail_next: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Let so many next plans of the entity fail."
    )

    def deeds(self) -> tuple[str, ...]:
        """Return what the event does, by the names of its fields."""
        return tuple(name for name in _DEEDS if getattr(self, name) is not None)


_DEEDS = (
    *("publish", "promote", "pipeline", "recall", "revert"),
    *("suppress", "unsuppress", "override", "command", "health", "fail_next"),
)
_OF_PRODUCTS = frozenset({"publish", "promote", "pipeline", "recall", "revert"})


@dataclass(frozen=True, slots=True)
class Fleet:
    """The products and environments that events change. ``failing``: how many next plans of an
    entity fail, by environment and entity."""

    products: Mapping[str, ProductState]
    environments: Mapping[str, Environment]
    failing: Mapping[tuple[str, str], int]


def event_refusal(event: FleetEvent, fleet: Fleet) -> Refusal | None:
    """Return why an event can't happen; None when it can."""
    deeds = event.deeds()
    if len(deeds) != 1:
        text = f"does {' and '.join(deeds)}" if deeds else "does nothing"
        return Refusal.of(Code.INVALID, text, fix=f"give exactly one of: {', '.join(_DEEDS)}")
    if deeds[0] in _OF_PRODUCTS:
        return _product_refusal(event, fleet)
    environment = _environment(event, fleet)
    if environment is None:
        return _unknown("environment", event.environment, fleet.environments)
    if event.unsuppress is not None:
        ids = [one.id for one in environment.suppressions]
        return None if event.unsuppress in ids else _unknown("unsuppress", event.unsuppress, ids)
    if deeds[0] not in ("command", "health", "fail_next"):
        return None
    entity = _entity(environment, event.entity)
    if entity is None:
        return _unknown("entity", event.entity, [one.name for one in environment.entities])
    if event.command is None:
        return None
    if not event.reason.strip():
        return Refusal.of(Code.INVALID, "is missing", field="reason", fix="say why")
    return command_refusal(entity, _command(event, event.command))


def _product_refusal(event: FleetEvent, fleet: Fleet) -> Refusal | None:
    state = fleet.products.get(event.product or "")
    if state is None:
        return _unknown("product", event.product, fleet.products)
    if event.publish is not None:
        return refusal_of(Published(release=event.publish), state)
    if event.revert is not None:
        return refusal_of(Reverted(recall=event.revert), state)
    if event.pipeline is not None and state.pipeline is None:
        return Refusal.of(Code.NOT_FOUND, "the product has no pipeline", field="pipeline")
    refusals = (refusal_of(one, state) for one in _promotions(event))
    return next((one for one in refusals if one is not None), None)


def _promotions(event: FleetEvent) -> Iterator[PromotedByHand]:
    for version, channel in (event.promote or {}).items():
        reason = event.reason or "a simulation"
        wanted = HandPromotion(version=version, channels=(channel,), reason=reason)
        yield PromotedByHand(promotion=wanted)


def _unknown(field: str, name: str | None, known: Mapping[str, object] | list[str]) -> Refusal:
    problem = "is missing" if name is None else f"there is no {name}"
    return Refusal.of(Code.NOT_FOUND, problem, field=field, fix=suggestion(name or "", known))


def after(event: FleetEvent, fleet: Fleet, now: datetime) -> Fleet:
    """Return the fleet after an event that can happen."""
    known = fleet.products.get(event.product or "")
    if known is not None and _OF_PRODUCTS.intersection(event.deeds()):
        product = _product_after(event, known, now)
        return replace(fleet, products={**fleet.products, product.id: product})
    environment = _environment(event, fleet)
    if environment is None:
        return fleet
    if event.fail_next is not None and event.entity is not None:
        key = (environment.name, event.entity)
        return replace(fleet, failing={**fleet.failing, key: event.fail_next})
    changed = _environment_after(event, environment, now)
    return replace(fleet, environments={**fleet.environments, changed.name: changed})


def _product_after(event: FleetEvent, state: ProductState, now: datetime) -> ProductState:
    if event.publish is not None:
        return after_event(Published(release=event.publish), state, now)
    if event.recall is not None:
        return after_event(Recalled(recall=event.recall), state, now)
    if event.revert is not None:
        return after_event(Reverted(recall=event.revert), state, now)
    if event.pipeline is not None and state.pipeline is not None:
        changed = state.pipeline.but(enabled=event.pipeline, since=None)
        return after_event(PipelineChanged(pipeline=changed), state, now)
    for one in _promotions(event):
        state = after_event(one, state, now)
    return state


def _environment_after(event: FleetEvent, environment: Environment, now: datetime) -> Environment:
    if event.suppress is not None:
        return environment.but(suppressions=(*environment.suppressions, event.suppress))
    if event.unsuppress is not None:
        kept = tuple(one for one in environment.suppressions if one.id != event.unsuppress)
        return environment.but(suppressions=kept)
    if event.override is not None:
        return environment.but(overrides=(*environment.overrides, event.override))
    changes: dict[str, object] = {}
    if event.health is not None:
        changes["health"] = event.health
    if event.command is not None:
        changes["command"] = _command(event, event.command).but(at=now)
    entities = tuple(
        one.but(state=one.state.but(**changes)) if one.name == event.entity else one
        for one in environment.entities
    )
    return environment.but(entities=entities)


def _command(event: FleetEvent, kind: CommandType) -> Command:
    return Command(
        id=f"{kind}-{event.at:%Y%m%dT%H%M%S}",
        type=kind,
        version=event.version,
        reason=event.reason,
    )


def _environment(event: FleetEvent, fleet: Fleet) -> Environment | None:
    if event.environment is None and len(fleet.environments) == 1:
        return next(iter(fleet.environments.values()))
    return fleet.environments.get(event.environment or "")


def _entity(environment: Environment, name: str | None) -> Entity | None:
    return next((one for one in environment.entities if one.name == name), None)
