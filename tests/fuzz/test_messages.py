"""Malformed messages are refused by their models, with nothing but ValidationError: any other
exception in a handler's decoding would fail the workflow task, again and again."""

import json
from random import Random

import pytest
from pydantic import TypeAdapter, ValidationError

from fuzz.mutations import mutated
from fuzz.seeds import Door, doors, valid
from properties import FACTORS, tries

DOORS = [pytest.param(door, id=str(door)) for door in doors() if door.model not in (None, object)]
TRIES = 120


@pytest.mark.parametrize("door", DOORS)
def test_a_malformed_message_is_read_or_refused(door: Door) -> None:
    adapter, inputs = TypeAdapter(door.model), valid(door)
    random = Random(str(door))
    for _ in range(tries(TRIES)):
        text = json.dumps(mutated(random.choice(inputs), random))
        try:
            value = adapter.validate_json(text)
        except ValidationError:
            continue
        # What was read can be carried from run to run. Infinity is read once, and written as null.
        carried = adapter.dump_json(adapter.validate_json(adapter.dump_json(value)))
        assert adapter.dump_json(adapter.validate_json(carried)) == carried, text[:2000]


MADE_UP = {"Instance-query-preview"}
"""Doors of which no valid input is known: mutations reach their first fields only."""


@pytest.mark.parametrize("door", DOORS)
def test_an_input_that_is_mutated_is_valid(door: Door) -> None:
    if str(door) in MADE_UP:
        return
    adapter = TypeAdapter(door.model)
    for input in valid(door):
        adapter.validate_json(json.dumps(input))


def test_every_door_is_known() -> None:
    kinds = {door.kind for door in doors()}
    assert kinds == {"start", "signal", "update", "query"}
    assert len(doors()) > 60
    assert FACTORS["default"] == 1
