"""What a product's state becomes by its pipeline: releases move on from channel to channel."""

from datetime import datetime
from typing import NamedTuple

from temporal_plans.domain.fleets.promotion import state as promotion_state
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import (
    ACTIONS,
    EntityUnderTest,
    ProductDecision,
    PromotionDecision,
)
from temporal_plans.domain.fleets.promotion.events import ProductEvent, Reported, after
from temporal_plans.domain.fleets.promotion.progress import promoted
from temporal_plans.messages.fleets.products import ProductState, Reporter
from temporal_plans.messages.promotions import CanaryReports

_ROUNDS_LIMIT = 100
"""How often it is decided at one time: each decision that acts moves releases a stage further."""


class Promoted(NamedTuple):
    """A product after its pipeline was looked at: the last answer, what was carried out, and when
    to look again."""

    state: ProductState
    answer: ProductDecision | None = None
    done: tuple[PromotionDecision, ...] = ()
    again: datetime | None = None


def promotions_of(state: ProductState) -> promotion_state.ProductState:
    """Return what promotions depend on. Raises AssertionError for a product without a name."""
    assert state.product is not None
    return promotion_state.ProductState.model_construct(
        product=state.product,
        channels=state.channels,
        pipeline=state.pipeline,
        runs=state.runs,
        reports=state.reports,
    )


def happened(state: ProductState, event: ProductEvent, now: datetime) -> ProductState:
    """Return the state after an event that can happen."""
    return _with(state, after(event, promotions_of(state), now))


def promote(state: ProductState, now: datetime) -> Promoted:
    """Return the product after what its pipeline promotes, recalls and cancels by now: it is
    decided again as long as there is something to do."""
    if state.pipeline is None:
        return Promoted(_with_tests(state, ()))
    known = promotions_of(state)
    done: list[PromotionDecision] = []
    answer = decide_promotions(known, now)
    for _ in range(_ROUNDS_LIMIT):
        known = promoted(known, answer)
        if not answer.acts:
            break
        done += [one for one in answer.promotions if one.outcome in ACTIONS]
        answer = decide_promotions(known, now)
    changed = _with_tests(_with(state, known), answer.tests)
    return Promoted(changed, answer, tuple(done), now if answer.acts else answer.next_wakeup)


def canary_channels(state: ProductState) -> tuple[str, ...]:
    """Return the channels whose followers promotions look at."""
    stages = state.pipeline.stages if state.pipeline else ()
    return tuple(sorted({one.source for one in stages if one.canary is not None}))


def with_canaries(
    state: ProductState, request: CanaryReports, now: datetime
) -> ProductState | None:
    """Return the state with the reports of an environment; None when one before them is missing. A
    report that was taken already, or that an earlier run of the environment sent, changes
    nothing."""
    last = state.reporters.get(request.environment)
    if last is not None and (request.epoch, request.number) <= (last.epoch, last.number):
        return state
    follows = last is not None and (last.epoch, last.number + 1) == (request.epoch, request.number)
    if not (follows or request.complete):
        return None
    gone = {(request.environment, name) for name in request.gone}
    if request.complete:
        there = {one.entity for one in request.entities}
        mine = (one for one in state.reports if one.environment == request.environment)
        gone |= {one.key for one in mine if one.entity not in there}
    reports = tuple(
        one.but(reported_at=min(one.reported_at or now, now)) for one in request.reports()
    )
    event = Reported.model_construct(reports=reports, gone=tuple(sorted(gone)))
    reporter = Reporter(epoch=request.epoch, number=request.number)
    reporters = {**state.reporters, request.environment: reporter}
    return happened(state.but(reporters=reporters), event, now)


def without_canaries(state: ProductState, environment: str | None = None) -> ProductState:
    """Return the state without the reports of an environment, or of all."""
    if environment is None:
        return state.but(reports=(), reporters={})
    reports = tuple(one for one in state.reports if one.environment != environment)
    reporters = {name: one for name, one in state.reporters.items() if name != environment}
    return state.but(reports=reports, reporters=reporters)


def _with(state: ProductState, known: promotion_state.ProductState) -> ProductState:
    """Return the state with what promotions have changed; of another product all environments must
    hear."""
    changed = state.but(
        product=known.product,
        channels=known.channels,
        pipeline=known.pipeline,
        runs=known.runs,
        reports=known.reports,
    )
    return changed if known.product == state.product else changed.but(revision=state.revision + 1)


def _with_tests(state: ProductState, tests: tuple[EntityUnderTest, ...]) -> ProductState:
    """Return the state with the entities under test. Only environments in which these are others
    must hear of that: for all others nothing has changed."""
    if tests == state.tests:
        return state
    before, now = _by_environment(state.tests), _by_environment(tests)
    concerned = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    revision = state.revision + 1
    return state.but(
        tests=tests,
        revision=revision,
        announced=revision if state.announced == state.revision else state.announced,
        untold=tuple(sorted({*state.untold, *concerned})),
    )


def _by_environment(tests: tuple[EntityUnderTest, ...]) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for one in tests:
        found.setdefault(one.environment, set()).add((one.entity, one.version))
    return found
