"""The conditions of every stage, whatever its kind."""

from collections.abc import Mapping

from temporal_plans.domain.fleets.decisions import Verdict
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.labels import unmet
from temporal_plans.domain.fleets.promotion.review import Review, failed, ok
from temporal_plans.domain.fleets.times import in_text

_CHANNEL = ("channel", "the target channel takes releases")
_LABELS = ("labels", "the release has the labels that are required")
_WINDOW = ("window", "within the maintenance window of the product")


def channel_open(review: Review) -> Verdict:
    if not review.target.archived:
        return ok(*_CHANNEL)
    text = f"the channel {review.target.name} is archived"
    cure = "remove archived, or change the pipeline"
    return failed(*_CHANNEL, PromotionCode.CHANNEL_ARCHIVED, text, cure=cure)


def labels_there(review: Review) -> Verdict:
    """The labels of the stage, and those of the target channel."""
    stage = review.stage.timed or review.stage.canary
    required: Mapping[str, tuple[str, ...]] = stage.labels if stage else {}
    missing = [
        *unmet(review.release.labels, required),
        *unmet(review.release.labels, review.target.labels),
    ]
    if not missing:
        return ok(*_LABELS)
    wanted = list(dict.fromkeys(missing))
    return failed(
        *_LABELS,
        PromotionCode.LABELS_MISSING,
        f"the release lacks {', '.join(wanted)}",
        cure="add the labels to the release",
        data={"labels": wanted},
    )


def window_open(review: Review) -> Verdict:
    window = review.open_window
    if window.is_open(review.now):
        return ok(*_WINDOW)
    opening = window.next_opening(review.now)
    when = f", which next opens {in_text(opening)}" if opening else ""
    return failed(
        *_WINDOW,
        PromotionCode.OUTSIDE_WINDOW,
        f"outside the maintenance window of the product{when}",
        cure="wait, edit the window, or promote by hand",
        again=opening,
    )
