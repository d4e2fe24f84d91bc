"""What a product becomes when decisions about it are carried out, and its environments with it."""

import hashlib
from collections.abc import Iterable
from datetime import datetime

from temporal_plans.domain.fleets.environment import Environment
from temporal_plans.domain.fleets.products import Admission, Product
from temporal_plans.domain.fleets.promotion.decisions import (
    EntityUnderTest,
    ProductDecision,
    PromotionOutcome,
)
from temporal_plans.domain.fleets.promotion.ramps import with_ramps
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.suppressions import Origin, Suppression


def promoted(state: ProductState, answer: ProductDecision) -> ProductState:
    """Return the state after an answer: releases are on the channels that they were promoted to,
    recalls are issued, and of runs is remembered what the answer says."""
    product = state.product
    for one in answer.promotions:
        if one.outcome is PromotionOutcome.PROMOTE:
            product = admitted(product, one.version, (one.target,), answer.at, state.reports)
    known = {one.id for one in product.recalls}
    issued = tuple(one for one in answer.recalls if one.id not in known)
    runs = (one.run for one in answer.promotions)
    return state.but(
        product=product.but(recalls=(*product.recalls, *issued)),
        runs=tuple(one for one in runs if one is not None),
    )


def admitted(
    product: Product,
    version: str,
    channels: Iterable[str],
    now: datetime,
    reports: Iterable[EntityReport] = (),
) -> Product:
    """Return a product with a release on more channels; where upgrades are spread over a time, that
    begins."""
    release = next(one for one in product.releases if one.version == version)
    new = tuple(one for one in dict.fromkeys(channels) if one not in release.channels)
    if not new:
        return product
    ramps = with_ramps(product, version, new, now, tuple(reports))
    changed = release.but(channels=(*release.channels, *new))
    entries = tuple(Admission(version=version, channel=one, at=now) for one in new)
    return product.but(
        releases=tuple(changed if one is release else one for one in product.releases),
        admissions=(*product.admissions, *entries),
        ramps=ramps,
    )


def with_tests(
    environment: Environment, product: str, tests: Iterable[EntityUnderTest], now: datetime
) -> Environment:
    """Return an environment with a suppression for each of its entities that promotions of a
    product test, and without those for entities that they test no longer."""
    wanted = {
        _suppression_id(product, one): one for one in tests if one.environment == environment.name
    }
    kept = tuple(
        one
        for one in environment.suppressions
        if one.origin is not Origin.PROMOTION or one.by != product or one.id in wanted
    )
    known = {one.id for one in kept}
    new = tuple(
        Suppression(
            id=identifier,
            origin=Origin.PROMOTION,
            entity=one.entity,
            start=now,
            reason=f"a promotion tests {one.version}",
            by=product,
        )
        for identifier, one in sorted(wanted.items())
        if identifier not in known
    )
    if not new and len(kept) == len(environment.suppressions):
        return environment
    return environment.but(suppressions=(*kept, *new))


def _suppression_id(product: str, test: EntityUnderTest) -> str:
    text = f"{product} {test.entity} {test.version}"
    return f"promotion-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
