"""Hundreds of products that need each other: the work grows with them, and not with its square."""

from collections.abc import Sequence

import pytest

from builders.fleets import NOW, entity, needs, release, snapshot
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.world import World

COUNT = 100


def test_a_circle_is_decided_with_few_looks_at_its_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    providers = World.providers

    def counted(self: World, one: Entity, product: str) -> Sequence[Entity]:
        nonlocal looks
        looks += 1
        return providers(self, one, product)

    monkeypatch.setattr(World, "providers", counted)
    place = snapshot(
        {f"e{n}": entity(f"g:p{n}", None) for n in range(COUNT)},
        {
            f"g:p{n}": [release("1.0.0", dependencies=[needs(f"g:p{(n + 1) % COUNT}")])]
            for n in range(COUNT)
        },
    )
    answer = decide(place, NOW)
    assert {str(one.outcome) for one in answer.decisions} == {"ISSUE"}
    assert looks < 20 * COUNT
