"""Stages that promote after a time on the source channel."""

from datetime import datetime, timedelta

from temporal_plans.domain.fleets.decisions import Verdict
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.pipelines import Timed
from temporal_plans.domain.fleets.promotion.review import Review, failed, ok
from temporal_plans.domain.fleets.times import in_text
from temporal_plans.domain.fleets.windows import ALL_TIME

_SOAK = ("soak", "on the source channel for long enough, weekends aside")
_WHOLE_SOAK = ("soak", "on the source channel for long enough")


def ready_at(review: Review, timed: Timed) -> datetime | None:
    """Return when the release will have soaked; None when that is not known."""
    if review.admitted is None or timed.soak <= timedelta():
        return review.admitted
    weekdays = ALL_TIME if timed.weekends else review.weekdays
    return weekdays.time_of_open(review.admitted, timed.soak)


def soaked(review: Review, timed: Timed) -> Verdict:
    """Whether the release was on the source channel for the time of the stage."""
    title = _WHOLE_SOAK if timed.weekends else _SOAK
    if review.admitted is None:
        return failed(
            *title,
            PromotionCode.ADMISSION_UNKNOWN,
            f"it is not known when the release came to {review.stage.source}",
            cure="add it to admissions of the product",
        )
    ready = ready_at(review, timed)
    if ready is not None and review.now >= ready:
        return ok(*title)
    until = f" until {in_text(ready)}" if ready else ""
    return failed(
        *title,
        PromotionCode.SOAKING,
        f"on {review.stage.source} since {in_text(review.admitted)}, and soaks{until}",
        cure="wait, or promote by hand",
        again=ready or review.weekdays.until,
    )
