"""Decides which releases of a product are promoted to which channels.

A pure function of the state and the time. Every condition of a stage is judged, never only the
first that does not hold, and each says what would cure it and when it may change by itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from temporal_plans.domain.fleets.catalogue import Catalogue
from temporal_plans.domain.fleets.decisions import Verdict
from temporal_plans.domain.fleets.promotion.canaries import (
    Pool,
    enough_canaries,
    enough_healthy,
    needed,
    soak_ends,
)
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.conditions import (
    channel_open,
    labels_there,
    window_open,
)
from temporal_plans.domain.fleets.promotion.decisions import (
    CanaryCount,
    EntityUnderTest,
    ProductDecision,
    PromotionDecision,
    PromotionOutcome,
)
from temporal_plans.domain.fleets.promotion.pipelines import Canary, Stage, Timed, is_canary
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.review import Review, failing
from temporal_plans.domain.fleets.promotion.runs import RunStatus, StageRun
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.promotion.timed import ready_at, soaked
from temporal_plans.domain.fleets.recalls import Recall, RecallCause, RecallStatus, RollOff
from temporal_plans.domain.fleets.suppressions import first_time, next_time

WAITING_LIMIT = timedelta(days=7)
"""For how long a release waits for the first canary to have it."""
PROMOTION_LIMIT = timedelta(days=30)
"""For how long a release may be in a stage, weekends included."""


def decide_promotions(state: ProductState, now: datetime) -> ProductDecision:
    """Decide at a time which releases are promoted, and why the others are not."""
    pass_ = _Pass(state, now)
    found = tuple(pass_.promotions())
    return ProductDecision.model_construct(
        product=state.id,
        at=now,
        promotions=found,
        recalls=tuple(pass_.recalls[name] for name in sorted(pass_.recalls)),
        tests=tuple(
            EntityUnderTest.model_construct(environment=a, entity=b, version=c)
            for a, b, c in sorted(pass_.tests)
        ),
        next_wakeup=first_time(one.next_evaluation_at for one in found),
    )


def recall_id(stage: Stage, version: str) -> str:
    """Return the id of the recall that a stage issues."""
    return f"canary-{stage.target}-{version}"[:100]


@dataclass(slots=True)
class _Pass:
    """One pass over the stages of a product."""

    state: ProductState
    now: datetime
    catalogue: Catalogue = field(init=False)
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])
    tests: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])

    def __post_init__(self) -> None:
        self.catalogue = Catalogue(self.state.product)

    def promotions(self) -> Iterator[PromotionDecision]:
        pipeline = self.state.pipeline
        if pipeline is None:
            return
        runs = {one.key: one for one in self.state.runs}
        admitted = {(one.version, one.channel): one.at for one in self.state.product.admissions}
        weekdays = self.state.weekdays(self.now)
        revoked = {
            one.id
            for one in self.state.product.recalls
            if one.status is RecallStatus.REVERTED and one.cause is RecallCause.PROMOTION
        }
        for stage in pipeline.stages:
            target = self.state.channel(stage.target)
            canaries = _Canaries(stage, self.state.reports)
            newest: bool = True
            for release in self.catalogue.channel(stage.source):
                usable = not self.catalogue.recalls(release.version)
                if stage.target not in release.channels:
                    key = (stage.source, stage.target, release.version)
                    none = StageRun.model_construct(
                        source=key[0], target=key[1], version=release.version
                    )
                    review = Review(
                        pipeline=pipeline,
                        stage=stage,
                        release=release,
                        run=runs.get(key, none),
                        target=target,
                        admitted=admitted.get(
                            (release.version, stage.source), release.published_at
                        ),
                        newest=newest,
                        revoked=recall_id(stage, release.version) in revoked,
                        window=self.state.product.window,
                        weekdays=weekdays,
                        now=self.now,
                    )
                    yield self._decided(review, canaries, usable)
                newest = newest and not usable

    def _decided(self, review: Review, canaries: "_Canaries", usable: bool) -> PromotionDecision:
        if not usable:
            ids = ", ".join(one.id for one in self.catalogue.recalls(review.release.version))
            text = f"recalled by {ids}"
            return _answer(review, PromotionOutcome.RECALLED, PromotionCode.RECALLED, text)
        if not review.pipeline.enabled:
            text = "the pipeline is disabled: enable it, or promote by hand"
            code = PromotionCode.PIPELINE_DISABLED
            return _answer(review, PromotionOutcome.PAUSED, code, text, run=review.run)
        if review.run.status is RunStatus.CANCELLED:
            code = review.run.code or PromotionCode.PROMOTION_TIMEOUT
            why = f" ({review.run.reason})" if review.run.reason else ""
            text = f"it was cancelled{why}: resume it, or promote by hand"
            return _answer(review, PromotionOutcome.CANCELLED, code, text, run=review.run)
        if review.run.code is PromotionCode.PAUSED_BY_HAND:
            text = f"a person paused it{f': {review.run.reason}' if review.run.reason else ''}"
            code = PromotionCode.PAUSED_BY_HAND
            return _answer(review, PromotionOutcome.PAUSED, code, text, run=review.run)
        if review.stage.timed is not None:
            return self._timed(review, review.stage.timed)
        if review.stage.canary is not None:
            pool = canaries.pool(review, review.stage.canary)
            return self._canary(review, review.stage.canary, pool)
        return _answer(review, PromotionOutcome.PAUSED, PromotionCode.PIPELINE_DISABLED, "")

    def _timed(self, review: Review, timed: Timed) -> PromotionDecision:
        soak = soaked(review, timed)
        verdicts = (
            soak,
            channel_open(review),
            labels_there(review),
            window_open(review),
        )
        if not failing(verdicts):
            return _answer(review, PromotionOutcome.PROMOTE, verdicts=verdicts)
        ready = ready_at(review, timed)
        began = [one for one in (ready, review.run.since, review.pipeline.since) if one is not None]
        over = max(began) + PROMOTION_LIMIT if ready is not None else None
        if review.is_over(over):
            return _cancelled(review, PromotionCode.PROMOTION_TIMEOUT, verdicts)
        changes = (soak.next_change_at, review.open_window.next_edge(self.now), over)
        return _answer(
            review, PromotionOutcome.EVALUATING, verdicts=verdicts, changes=changes, run=review.run
        )

    def _canary(self, review: Review, canary: Canary, pool: Pool) -> PromotionDecision:
        if not pool.entities:
            text = f"no entity that follows {review.stage.source} is a canary"
            return self._paused(review, pool, PromotionCode.NO_CANARIES, text)
        review, pool = _resumed(review, pool)
        started = pool.started_at if pool.large_enough else review.run.started_at
        run = review.run.but(started_at=started, status=RunStatus.EVALUATING, code=None)
        if started is not None and not pool.reached and not review.newest:
            text = "the canaries have a newer release"
            return self._paused(review, pool, PromotionCode.SUPERSEDED, text)
        count = pool.count()
        changes = [*pool.next_changes(), review.open_window.next_edge(self.now)]
        verdicts = (
            enough_canaries(pool),
            enough_healthy(pool, count, next_time(self.now, *pool.next_changes())),
            channel_open(review),
            labels_there(review),
            window_open(review),
        )
        if pool.large_enough:
            if self._is_bad(review, canary, count):
                return self._recalled(review, canary, count, verdicts)
            if not failing(verdicts):
                return _answer(review, PromotionOutcome.PROMOTE, verdicts=verdicts, count=count)
        times = [*_timeouts(review, pool, count)]
        over = [code for time, code in times if review.is_over(time)]
        if over:
            return _cancelled(review, over[0], verdicts, count)
        if started is not None:
            self.tests |= {(*one.key, review.release.version) for one in pool.reached}
        changes += [time for time, _ in times]
        return _answer(
            review,
            PromotionOutcome.EVALUATING,
            verdicts=verdicts,
            changes=changes,
            run=run,
            count=count,
        )

    def _paused(
        self, review: Review, pool: Pool, code: PromotionCode, text: str
    ) -> PromotionDecision:
        """Return that it is paused; of all times that of the whole promotion goes on."""
        over = review.after(PROMOTION_LIMIT)
        if review.is_over(over):
            return _cancelled(review, PromotionCode.PROMOTION_TIMEOUT, ())
        run = review.run.but(status=RunStatus.PAUSED, code=code, started_at=pool.started_at)
        outcome, count = PromotionOutcome.PAUSED, pool.count()
        return _answer(review, outcome, code, text, run=run, count=count, changes=(over,))

    @staticmethod
    def _is_bad(review: Review, canary: Canary, count: CanaryCount) -> bool:
        """Return whether so many canaries are bad that the release is recalled; not a second time
        after people reverted that."""
        recall = canary.recall
        if recall is None or review.revoked:
            return False
        return count.unhealthy >= needed(recall, count.canaries)

    def _recalled(
        self,
        review: Review,
        canary: Canary,
        count: CanaryCount,
        verdicts: tuple[Verdict, ...],
    ) -> PromotionDecision:
        text = f"{count.unhealthy} of {count.canaries} canaries were in error for too long"
        version = review.release.version
        recall = Recall(
            id=recall_id(review.stage, version),
            start=version,
            single=True,
            reason=text,
            by=f"the stage from {review.stage.source} to {review.stage.target}",
            cause=RecallCause.PROMOTION,
            roll_off=canary.recall.roll_off if canary.recall else RollOff(),
        )
        self.recalls[recall.id] = recall
        code = PromotionCode.CANARIES_UNHEALTHY
        outcome = PromotionOutcome.RECALL
        return _answer(review, outcome, code, text, verdicts=verdicts, count=count)


@dataclass(slots=True)
class _Canaries:
    """The canaries of a stage, by their version."""

    stage: Stage
    reports: Sequence[EntityReport]
    entities: list[EntityReport] = field(init=False)
    by_version: dict[str | None, list[EntityReport]] = field(init=False)

    def __post_init__(self) -> None:
        found = (one for one in self.reports if is_canary(one, self.stage))
        self.entities = sorted(found, key=lambda one: one.key)
        self.by_version = defaultdict(list)
        for one in self.entities:
            self.by_version[one.version].append(one)

    def pool(self, review: Review, canary: Canary) -> Pool:
        return Pool(review, canary, self.entities, self.by_version.get(review.release.version, ()))


def _resumed(review: Review, pool: Pool) -> tuple[Review, Pool]:
    """Return a promotion that was paused for lack of canaries, or of any with its release: its
    times begin again."""
    if review.run.status is not RunStatus.PAUSED:
        return review, pool
    superseded = review.run.code is PromotionCode.SUPERSEDED
    if superseded and not pool.reached and not review.newest:
        return review, pool
    run = review.run.but(status=RunStatus.EVALUATING, code=None, since=review.now, started_at=None)
    review = replace(review, run=run)
    return review, Pool(review, pool.canary, pool.entities, pool.reached)


def _timeouts(
    review: Review, pool: Pool, count: CanaryCount
) -> Iterator[tuple[datetime | None, PromotionCode]]:
    """Yield when a promotion by canaries is cancelled, each with the reason."""
    if pool.started_at is None:
        yield review.after(WAITING_LIMIT), PromotionCode.CANARIES_NOT_REACHED
    elif not review.newest and count.healthy < count.needed:
        yield soak_ends(pool), PromotionCode.SOAK_TIMEOUT
    yield review.after(PROMOTION_LIMIT), PromotionCode.PROMOTION_TIMEOUT


def _cancelled(
    review: Review,
    code: PromotionCode,
    verdicts: tuple[Verdict, ...],
    count: CanaryCount | None = None,
) -> PromotionDecision:
    run = review.run.but(status=RunStatus.CANCELLED, code=code)
    text = _TEXTS[code]
    outcome = PromotionOutcome.CANCEL
    return _answer(review, outcome, code, text, verdicts=verdicts, run=run, count=count)


_TEXTS = {
    PromotionCode.CANARIES_NOT_REACHED: "no canary had the release for 7 days",
    PromotionCode.SOAK_TIMEOUT: "canaries did not become healthy in twice the time of the soak",
    PromotionCode.PROMOTION_TIMEOUT: "it was not promoted in 30 days",
}


def _answer(
    review: Review,
    outcome: PromotionOutcome,
    code: PromotionCode | None = None,
    message: str = "",
    *,
    verdicts: tuple[Verdict, ...] = (),
    run: StageRun | None = None,
    count: CanaryCount | None = None,
    changes: Sequence[datetime | None] = (),
) -> PromotionDecision:
    against = failing(verdicts)
    if code is None and against:
        message = against[0].message
    return PromotionDecision.model_construct(
        version=review.release.version,
        source=review.stage.source,
        target=review.stage.target,
        outcome=outcome,
        code=code.value if code else against[0].code if against else "",
        message=message,
        conditions=verdicts,
        canaries=count,
        run=run if run is not None and run.says_something else None,
        next_evaluation_at=next_time(review.now, *changes),
    )
