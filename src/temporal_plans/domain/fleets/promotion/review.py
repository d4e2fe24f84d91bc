"""A release in a stage, at a time: what its conditions look at, and how they answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from temporal_plans.domain.fleets.decisions import Verdict, VerdictState
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline, Stage
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.windows import ALL_TIME, Window

EDITORS = ("product editor",)


@dataclass(frozen=True, slots=True)
class Review:
    """``admitted``: when the release came to the source channel (None: unknown). ``newest``:
    whether it is the newest there that is not recalled. ``revoked``: people reverted a recall of it
    by this stage."""

    pipeline: Pipeline
    stage: Stage
    release: Release
    run: StageRun
    target: Channel
    admitted: datetime | None
    newest: bool
    revoked: bool
    window: Window | None
    weekdays: Window
    now: datetime

    @property
    def began(self) -> datetime | None:
        """When the times of the promotion began to run."""
        times = [self.admitted, self.run.since, self.pipeline.since]
        return max((one for one in times if one is not None), default=None)

    def after(self, length: timedelta) -> datetime | None:
        """Return the time so long after the promotion began."""
        return None if self.began is None else self.began + length

    def is_over(self, time: datetime | None) -> bool:
        return time is not None and self.now >= time

    @property
    def open_window(self) -> Window:
        return self.window or ALL_TIME


def ok(identifier: str, title: str) -> Verdict:
    return Verdict.model_construct(id=identifier, title=title, state=VerdictState.OK)


def failed(
    identifier: str,
    title: str,
    code: PromotionCode,
    message: str,
    *,
    cure: str = "",
    again: datetime | None = None,
    data: Mapping[str, list[Any]] | None = None,
) -> Verdict:
    """Return the answer of a condition that does not hold."""
    return Verdict.model_construct(
        id=identifier,
        title=title,
        state=VerdictState.FAILED,
        code=code.value,
        message=message,
        data=dict(data or {}),
        next_change_at=again,
        actions=(cure,) if cure else (),
        who_can_act=EDITORS,
    )


def failing(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    return tuple(one for one in verdicts if one.state is VerdictState.FAILED)
