"""Malformed documents of a fleet are refused with the reasons; what is read is decided about, and
nothing raises another exception."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from fuzz.mutations import mutated
from fuzz.test_files import garbled
from properties import tries
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.entity_graph import entity_graph
from temporal_plans.domain.fleets.explanation import explained
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.fleets.files import read_documents
from temporal_plans.loading.fleets.snapshots import check_each, product_states, snapshots

EXAMPLES = Path(__file__).parents[2] / "examples" / "fleets"
FILES = sorted([*EXAMPLES.glob("*.yml"), *EXAMPLES.glob("simulation/*.yml")])
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
TRIES = 12


def refusals(text: str) -> int:
    """How many reasons there are against the documents. Other exceptions are faults."""
    try:
        files = read_documents(text, "fuzz.yml")
        check_each(files)
        places, products = snapshots(files, NOW), product_states(files, NOW)
    except SpecError as error:
        return len(error.reasons) or pytest.fail(f"refused without a reason: {text!r}")
    for place in places:
        assert decide(place, NOW).model_dump_json()
        world = World(place)
        assert entity_graph(world).model_dump_json()
        for entity in place.environment.entities[:3]:
            assert explained(world, entity.name, NOW) is not None
    for product in products:
        decide_promotions(product, NOW)
    return 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_malformed_documents_are_refused_with_reasons(path: Path) -> None:
    random = Random(path.name)
    text = path.read_text(encoding="utf-8")
    documents: list[Any] = list(yaml.load_all(text, yaml.CSafeLoader))
    documents = json.loads(json.dumps(documents, default=str))
    refused = 0
    for _ in range(tries(TRIES)):
        index = random.randrange(len(documents))
        changed = [*documents[:index], mutated(documents[index], random), *documents[index + 1 :]]
        refused += refusals(yaml.safe_dump_all(changed)) > 0
    assert refused > tries(TRIES) // 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_garbled_documents_are_refused_with_reasons(path: Path) -> None:
    text, random = path.read_text(encoding="utf-8"), Random(path.name)
    for _ in range(tries(5)):
        refusals(garbled(text, random))


def test_nested_without_end() -> None:
    for text in ("[" * 3000, "a: " * 1, "{a: " * 2000, "- " * 3000, "&a [*a]", '{"a":' * 5000):
        assert refusals(text)
        assert refusals(f"kind: environment\nname: a\nconfig: {text}")
