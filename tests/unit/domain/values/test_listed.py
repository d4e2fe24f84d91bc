"""Lists that are cut only when that saves something."""

import pytest

from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.text import listed


@pytest.mark.parametrize(
    ("count", "limit", "expected"),
    [
        (1, 3, "a"),
        (4, 3, "a, b, c, d"),
        (5, 3, "a, b, c and 2 more"),
        (2, 1, "a, b"),
        (3, 1, "a and 2 more"),
    ],
)
def test_listed(count: int, limit: int, expected: str) -> None:
    assert listed("abcdef"[:count], limit) == expected


def test_a_suggestion_names_all_when_they_are_few() -> None:
    names = [f"name-{number:02}" for number in range(11)]
    assert suggestion("x", names) == f"use one of: {', '.join(names)}"
    many = [f"name-{number:02}" for number in range(30)]
    assert suggestion("x", many).endswith("name-09 and 20 more")


def test_a_name_in_other_letters_is_suggested() -> None:
    assert suggestion("replicas", ["REPLICAS", "MEMORY"]) == "did you mean REPLICAS?"
