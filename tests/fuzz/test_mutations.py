"""Mutations leave the values that they are made of alone."""

import copy
import json
from random import Random

from fuzz.mutations import STRANGE, mutated


def test_documents_stay_small_and_the_strange_values_what_they_are() -> None:
    random, strange = Random(1), copy.deepcopy(STRANGE)
    for _ in range(20_000):
        assert len(json.dumps(mutated({"a": [1, {"b": "c"}]}, random))) < 200_000
    assert repr(STRANGE) == repr(strange)
