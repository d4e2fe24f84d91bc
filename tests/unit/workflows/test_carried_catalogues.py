"""Catalogues that do not fit together are fetched again, and not carried from run to run."""

from datetime import timedelta

from builders.fleets import NOW
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.messages.fleets.catalogues import KnownProduct
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.workflows.fleets import book

RAMP = Ramp(
    channel="stable", version="1.0.0", started_at=NOW, duration=timedelta(hours=1), entities=4
)


def known(name: str, size: int, *ramps: Ramp) -> KnownProduct:
    return KnownProduct(revision=3, product=Product(id=name, ramps=ramps), size=size)


def state(*products: KnownProduct) -> EnvironmentState:
    return EnvironmentState.of("prod").but(products={one.product.id: one for one in products})


def test_catalogues_fit_up_to_the_size_of_a_payload() -> None:
    assert book.fits(state(known("g:a", 900_000), known("g:b", 900_000)))
    assert not book.fits(state(known("g:a", 1_000_000), known("g:b", 1_000_000)))


def test_those_that_are_not_carried_are_fetched_but_for_what_counts_here_alone() -> None:
    carried = state(known("g:a", 10), known("g:b", 10, RAMP)).without_catalogues()
    assert list(carried.products) == ["g:b"]
    assert carried.stale == {"g:a": 0}
    assert carried.again is None
