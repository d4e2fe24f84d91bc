"""What happens to a product: events in, a new state out. Whatever can't happen is a ``Refusal``."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from temporal_plans.domain.fleets.names import ShortName, Text
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion.by_hand import (
    HandPromotion,
    channels_by_hand,
    hand_refusal,
    needs_of,
)
from temporal_plans.domain.fleets.promotion.channels import (
    DEFAULT_CHANNELS,
    Channel,
    default_channels,
)
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline, pipeline_problems
from temporal_plans.domain.fleets.promotion.progress import admitted
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.runs import RunStatus, StageRun
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import Recall, RecallStatus
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import VersionText, parse_version
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


class Published(Value):
    """A release was published. It comes to the channels that it names, and to those of its kind of
    version."""

    event: Literal["published"] = "published"
    release: Release


class Reported(Value):
    """Entities were reported; ``gone`` are those that are no longer there, by environment and
    name."""

    event: Literal["reported"] = "reported"
    reports: tuple[EntityReport, ...] = Field(default=(), max_length=20_000)
    gone: tuple[tuple[str, str], ...] = Field(default=(), max_length=20_000)


class PromotedByHand(Value):
    """A person promotes a release."""

    event: Literal["promoted-by-hand"] = "promoted-by-hand"
    promotion: HandPromotion


class Recalled(Value):
    """Releases are recalled, or the recall of that id is edited."""

    event: Literal["recalled"] = "recalled"
    recall: Recall


class Reverted(Value):
    """A recall is reverted."""

    event: Literal["reverted"] = "reverted"
    recall: ShortName


class Paused(Value):
    """A person pauses the promotion of a release in a stage."""

    event: Literal["paused"] = "paused"
    source: ShortName
    target: ShortName
    version: VersionText
    reason: Text


class Resumed(Value):
    """A person lets the promotion of a release in a stage go on; its times begin again."""

    event: Literal["resumed"] = "resumed"
    source: ShortName
    target: ShortName
    version: VersionText


class Cancelled(Value):
    """A person cancels the promotion of a release in a stage."""

    event: Literal["cancelled"] = "cancelled"
    source: ShortName
    target: ShortName
    version: VersionText
    reason: Text


class PipelineChanged(Value):
    """The pipeline of the product is another, or there is none."""

    event: Literal["pipeline-changed"] = "pipeline-changed"
    pipeline: Pipeline | None


class ChannelChanged(Value):
    """A channel has other rules."""

    event: Literal["channel-changed"] = "channel-changed"
    channel: Channel


ProductEvent = Annotated[
    Published
    | Reported
    | PromotedByHand
    | Recalled
    | Reverted
    | Paused
    | Resumed
    | Cancelled
    | PipelineChanged
    | ChannelChanged,
    Field(discriminator="event"),
]


def refusal_of(event: ProductEvent, state: ProductState) -> Refusal | None:
    """Return why an event can't happen; None when it can."""
    match event:
        case Published():
            return _publish_refusal(event.release, state)
        case PromotedByHand():
            return hand_refusal(event.promotion, state)
        case Reverted():
            return _unknown("recall", event.recall, [one.id for one in state.product.recalls])
        case Paused() | Resumed() | Cancelled():
            return _stage_refusal(event, state)
        case PipelineChanged():
            return _pipeline_refusal(event.pipeline, state)
        case ChannelChanged():
            return channel_refusal(event.channel)
        case Reported() | Recalled():
            return None


def channel_refusal(channel: Channel) -> Refusal | None:
    """Return why a channel can't have its rules."""
    if channel.name not in DEFAULT_CHANNELS or not (channel.labels or channel.archived):
        return None
    text = f"{channel.name} takes every release of its kind of version"
    fix = "remove labels and archived, or use a channel of your own"
    return Refusal.of(Code.INVALID, text, field="name", fix=fix)


def _publish_refusal(release: Release, state: ProductState) -> Refusal | None:
    version = parse_version(release.version)
    if version is None or not version.orderable:
        reason = Reason(
            field="version",
            problem="has no order among versions, and can't be released",
            value=release.version,
            fix="use 1.2.3, 1.2.3-rc1 or a snapshot of those",
        )
        return Refusal(code=Code.INVALID, reasons=(reason,))
    if any(one.version == release.version for one in state.product.releases):
        text = f"{release.version} is published already"
        return Refusal.of(Code.NAME_TAKEN, text, field="version", fix="use another version")
    return needs_of(release, release.channels, state)


def _stage_refusal(event: Paused | Resumed | Cancelled, state: ProductState) -> Refusal | None:
    stages = state.pipeline.stages if state.pipeline else ()
    name = f"{event.source} to {event.target}"
    known = [f"{one.source} to {one.target}" for one in stages]
    if name not in known:
        text = f"no stage of the pipeline goes from {name}" if stages else "has no pipeline"
        field, value = ("stage", None) if stages else ("product", state.id)
        fix = suggestion(name, known) if stages else "apply a document of its pipeline"
        return Refusal(
            code=Code.NOT_FOUND,
            reasons=(Reason(field=field, problem=text, value=value, fix=fix),),
        )
    versions = [one.version for one in state.product.releases]
    return _unknown("version", event.version, versions)


def _pipeline_refusal(pipeline: Pipeline | None, state: ProductState) -> Refusal | None:
    if pipeline is None:
        return None
    problems = list(pipeline_problems(pipeline))
    if pipeline.product != state.id:
        text = f"is the pipeline of another product than {state.id}"
        problems.append(Reason(field="product", problem=text, value=pipeline.product))
    return Refusal(code=Code.INVALID, reasons=tuple(problems)) if problems else None


def _unknown(field: str, name: str, known: list[str]) -> Refusal | None:
    if name in known:
        return None
    fix = suggestion(name, known)
    return Refusal.of(Code.NOT_FOUND, f"there is no {name}", field=field, fix=fix)


def after(event: ProductEvent, state: ProductState, now: datetime) -> ProductState:
    """Return the state after an event that can happen."""
    product = state.product
    match event:
        case Published():
            return state.but(product=_published(event.release, state, now))
        case Reported():
            return state.but(reports=_reported(event, state, now))
        case PromotedByHand():
            channels = channels_by_hand(event.promotion, state)
            version = event.promotion.version
            return state.but(product=admitted(product, version, channels, now, state.reports))
        case Recalled():
            others = tuple(one for one in product.recalls if one.id != event.recall.id)
            return state.but(product=product.but(recalls=(*others, event.recall)))
        case Reverted():
            recalls = tuple(
                one.but(status=RecallStatus.REVERTED) if one.id == event.recall else one
                for one in product.recalls
            )
            return state.but(product=product.but(recalls=recalls))
        case Paused() | Resumed() | Cancelled():
            return state.but(runs=_with_run(event, state, now))
        case PipelineChanged():
            return state.but(pipeline=_pipeline(event.pipeline, state.pipeline, now))
        case ChannelChanged():
            others_ = tuple(one for one in state.channels if one.name != event.channel.name)
            return state.but(channels=(*others_, event.channel))


def _published(release: Release, state: ProductState, now: datetime) -> Product:
    channels = (*release.channels, *default_channels(release.version))
    new = release.but(channels=(), published_at=release.published_at or now)
    product = state.product.but(releases=(*state.product.releases, new))
    return admitted(product, release.version, channels, now, state.reports)


def _reported(event: Reported, state: ProductState, now: datetime) -> tuple[EntityReport, ...]:
    known = {one.key: one for one in state.reports}
    weekdays = state.weekdays(now)
    for one in event.reports:
        known[one.key] = one.following(known.get(one.key), weekdays)
    for key in event.gone:
        known.pop(key, None)
    return tuple(known[key] for key in sorted(known))


def _with_run(
    event: Paused | Resumed | Cancelled, state: ProductState, now: datetime
) -> tuple[StageRun, ...]:
    key = (event.source, event.target, event.version)
    others = tuple(one for one in state.runs if one.key != key)
    none = StageRun(source=event.source, target=event.target, version=event.version)
    run = next((one for one in state.runs if one.key == key), none)
    if isinstance(event, Paused):
        code = PromotionCode.PAUSED_BY_HAND
        return (*others, run.but(status=RunStatus.PAUSED, code=code, reason=event.reason))
    if isinstance(event, Cancelled):
        code = PromotionCode.CANCELLED_BY_HAND
        return (*others, run.but(status=RunStatus.CANCELLED, code=code, reason=event.reason))
    return (
        *others,
        run.but(status=RunStatus.EVALUATING, code=None, reason="", since=now, started_at=None),
    )


def _pipeline(new: Pipeline | None, old: Pipeline | None, now: datetime) -> Pipeline | None:
    """Return a pipeline with the time from which it is enabled."""
    if new is None or new.since is not None or not new.enabled:
        return new
    return new.but(since=old.since if old is not None and old.enabled else now)


def impacted(reports: Iterable[EntityReport], version: str, channels: Iterable[str]) -> int:
    """Return how many entities a release on some channels concerns: those with an older version, or
    none."""
    wanted = parse_version(version)
    names = frozenset(channels)
    count = 0
    for one in reports:
        if one.channel not in names:
            continue
        current = parse_version(one.version) if one.version else None
        older = current is None or (current.key or ()) < ((wanted.key if wanted else None) or ())
        count += older
    return count
