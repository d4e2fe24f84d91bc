"""What environments and products carry from run to run fits into one payload, at each planned
scale, with room for five times as much; ARCHITECTURE.md has the numbers."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.products import Admission, Product
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.values.compressed import PAYLOAD_LIMIT, payload_size
from temporal_plans.messages.fleets.catalogues import (
    Announce,
    Announcement,
    Catalogue,
    KnownProduct,
)
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import DecideEnvironment, EnvironmentState
from temporal_plans.messages.fleets.payloads import KeptFiles
from temporal_plans.messages.fleets.plans import PLANS_KEPT, PlanRow
from temporal_plans.messages.fleets.products import FollowProduct, ProductState
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.product import BATCH

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ROOM = PAYLOAD_LIMIT // 10
ENTITIES, RELEASES, ENVIRONMENTS = 2_000, 1_000, 1_000


def releases(count: int) -> tuple[Release, ...]:
    """Releases that look as those of a real product do: a commit, a dependency, a time."""
    chance = Random(7)
    return tuple(
        Release.model_validate(
            {
                "version": f"1.{number}.0",
                "channels": ["stable"],
                "published_at": NOW - timedelta(minutes=37 * (count - number)),
                "labels": {"commit": f"{chance.getrandbits(160):040x}"},
                "dependencies": [{"product": "g:db", "minimum_version": f"1.{number // 10}.0"}],
            }
        )
        for number in range(count)
    )


def product(count: int, name: str = "g:web") -> Product:
    found = releases(count)
    admissions = tuple(Admission(version=one.version, channel="stable", at=NOW) for one in found)
    return Product(id=name, releases=found, admissions=admissions)


def known(count: int, name: str = "g:web") -> Product:
    """A product as environments know it."""
    return product(count, name).but(admissions=())


def environment(
    count: int, *, products: tuple[Product, ...] = (), secret: int = 8
) -> EnvironmentState:
    """An environment of entities with a configuration each, ``secret`` bytes of which can't be
    compressed."""
    chance = Random(7)
    declared: dict[str, Any] = {}
    entities: list[Entity] = []
    for number in range(count):
        name = f"entity-{number:05}"
        overrides = {"ADDRESS": f"10.1.{number // 250}.{number % 250}"}
        overrides["KEY"] = chance.randbytes(secret).hex()
        revision = chance.randbytes(8).hex()
        declared[name] = {
            "product": "g:web",
            "kind": "plan",
            "config": {"1.0.0": {"overrides": overrides}},
        }
        settings = {"product": "g:web", "kind": "plan", "config": {"1.0.0": {"revision": revision}}}
        reported = {"version": "1.0.0", "config": {"key": "1.0.0", "revision": revision}}
        entities.append(
            Entity.model_validate({"name": name, "settings": settings, "state": reported})
        )
    declaration = EnvironmentDeclaration.model_validate({"name": "big", "entities": declared})
    state = EnvironmentState.of("big").but(declaration=declaration)
    return book.with_configs(
        state.but(
            environment=state.environment.but(entities=tuple(entities)),
            products={one.id: KnownProduct(revision=1, product=one) for one in products},
            history=tuple(map(_row, range(PLANS_KEPT))),
            again={one.name: NOW for one in entities},
        )
    )


def _row(number: int) -> PlanRow:
    entity = f"entity-{number:05}"
    return PlanRow(
        entity=entity,
        number=number,
        plan_id=f"environment/big/{entity}.{number}",
        kind=PlanKind.INSTALL,
        intent=Intent.UPGRADE,
        status="SUCCEEDED",
        issued_at=NOW + timedelta(seconds=number),
        ended_at=NOW + timedelta(seconds=2 * number),
    )


def test_two_thousand_entities() -> None:
    state = environment(ENTITIES, products=(known(RELEASES),))
    assert payload_size(book.with_configs_once(state)) < 2 * ROOM
    request = DecideEnvironment(
        environment=state.environment, products=book.snapshot_of(state).products, now=NOW
    )
    assert payload_size(request) < 2 * ROOM


def test_a_thousand_releases_and_followers() -> None:
    whole = product(RELEASES)
    chance = Random(7)
    files = {
        one.version: KeptFiles(digest=chance.randbytes(32).hex(), names=("svc.yml",))
        for one in whole.releases
    }
    followers = tuple(f"environment-{number}" for number in range(ENVIRONMENTS))
    state = ProductState(product=whole, revision=RELEASES, followers=followers, files=files)
    assert payload_size(state) < ROOM
    assert payload_size(Catalogue(revision=1, product=whole.but(admissions=()))) < ROOM


def test_a_thousand_environments_are_told_in_small_messages() -> None:
    names = tuple(f"environment-{number}" for number in range(ENVIRONMENTS))
    announcement = Announcement(product="g:web", revision=RELEASES)
    assert len(announcement.model_dump_json()) < 1_000
    batch = Announce(announcement=announcement, environments=names[:BATCH])
    assert len(batch.model_dump_json()) < 5_000
    together = FollowProduct(environment=names[0], others=names[1:])
    assert len(together.model_dump_json()) < 50_000


def test_configurations_are_carried_once() -> None:
    state = environment(ENTITIES, secret=150)
    left = {"f" * 64: {"a": "of a release that an entity may go back to"}}
    state = state.but(configs={**state.configs, **left})
    carried = book.with_configs_once(state)
    assert carried.configs == left
    assert payload_size(carried) < 0.6 * payload_size(state)
    assert book.with_configs(carried).configs == {
        key: one for key, one in state.configs.items() if key not in left
    }, "nothing refers to it any more"
