"""Promotion by a person: no soak and no window holds it back, but labels do."""

from collections.abc import Iterable

from pydantic import Field

from temporal_plans.domain.fleets.names import ShortName, Text
from temporal_plans.domain.fleets.promotion.labels import unmet
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import covering
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import OrderableVersion
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


class HandPromotion(Value):
    """A release, and the channels that it should come to; exactly one way to name them."""

    version: OrderableVersion = Field(description="The release.")
    channels: tuple[ShortName, ...] = Field(
        default=(), max_length=50, description="These channels, in the pipeline or not."
    )
    like: OrderableVersion | None = Field(
        default=None, description="All channels that have this other release."
    )
    up_to: ShortName | None = Field(
        default=None, description="The channels of the pipeline on the way to this one, and it."
    )
    whole_pipeline: bool = Field(default=False, description="All channels of the pipeline.")
    reason: Text = Field(default="", description="Why; it must be given.")
    by: Text = Field(default="", description="Who promotes it.")


def hand_refusal(promotion: HandPromotion, state: ProductState) -> Refusal | None:
    """Return why a release can't be promoted by hand; None when it can. Every problem is named."""
    if not promotion.reason.strip():
        return Refusal.of(Code.INVALID, "is missing", field="reason", fix="say why")
    ways = [
        name for name in ("channels", "like", "up_to", "whole_pipeline") if getattr(promotion, name)
    ]
    if len(ways) != 1:
        text = "names its channels in several ways" if ways else "names no channels"
        fix = "give exactly one of: channels, like, up-to, whole-pipeline"
        return Refusal.of(Code.INVALID, text, field="channels", fix=fix)
    release = _release(promotion.version, state)
    if release is None:
        return _unknown("version", promotion.version, _versions(state))
    if promotion.like is not None and _release(promotion.like, state) is None:
        return _unknown("like", promotion.like, _versions(state))
    targets = [one.target for one in state.pipeline.stages] if state.pipeline else []
    if promotion.up_to is not None and promotion.up_to not in targets:
        return _unknown("up-to", promotion.up_to, targets)
    recalls = covering(state.product.recalls, promotion.version)
    if recalls:
        text = f"is recalled by {', '.join(one.id for one in recalls)}"
        reason = Reason(
            field="version", problem=text, value=promotion.version, fix="revert the recall first"
        )
        return Refusal(code=Code.NOT_APPLICABLE, reasons=(reason,))
    channels = [c for c in channels_by_hand(promotion, state) if c not in release.channels]
    if not channels:
        text = f"{promotion.version} is on all these channels already"
        return Refusal.of(Code.NOT_APPLICABLE, text, field="channels")
    return needs_of(release, channels, state)


def needs_of(release: Release, channels: Iterable[str], state: ProductState) -> Refusal | None:
    """Return what a release lacks to come to some channels; None when it lacks nothing."""
    reasons: list[Reason] = []
    for name in channels:
        channel = state.channel(name)
        if channel.archived:
            text = f"the channel {name} is archived"
            reasons.append(Reason(field="channels", problem=text, fix="use another channel"))
        missing = unmet(release.labels, channel.labels)
        if missing:
            text = f"the channel {name} needs the labels {', '.join(missing)}"
            reasons.append(Reason(field="labels", problem=text, fix="add them to the release"))
    return Refusal(code=Code.INVALID, reasons=tuple(reasons)) if reasons else None


def channels_by_hand(promotion: HandPromotion, state: ProductState) -> tuple[str, ...]:
    """Return the channels that a promotion names, in the order of the pipeline."""
    if promotion.channels:
        return promotion.channels
    stages = state.pipeline.stages if state.pipeline else ()
    if promotion.like is not None:
        other = _release(promotion.like, state)
        return other.channels if other else ()
    if promotion.up_to is None:
        return tuple(dict.fromkeys(one.target for one in stages))
    wanted = {promotion.up_to}
    while True:
        # A way to the channel goes through every channel that leads to one on the way.
        more = {one.source for one in stages if one.target in wanted} - wanted
        if not more:
            break
        wanted |= more
    return tuple(dict.fromkeys(one.target for one in stages if one.target in wanted))


def _release(version: str, state: ProductState) -> Release | None:
    return next((one for one in state.product.releases if one.version == version), None)


def _versions(state: ProductState) -> list[str]:
    return [one.version for one in state.product.releases]


def _unknown(field: str, name: str, known: list[str]) -> Refusal:
    fix = suggestion(name, known)
    return Refusal.of(Code.NOT_FOUND, f"there is no {name}", field=field, fix=fix)
