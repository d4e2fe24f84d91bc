"""Parameter files."""

import pytest

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.parameter_file import given_texts, parameter_texts
from temporal_plans.loading.packages.structures import decode


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("null", {}),
        ("A: text", {"A": "text"}),
        ("A: ''", {"A": ""}),
        ("A: null\nB: 1", {"A": "", "B": "1"}),
        ("A: 2097152", {"A": "2097152"}),
        ("A: 0.5", {"A": "0.5"}),
        ("A: yes", {"A": "true"}),
        ('A: "010"', {"A": "010"}),
        ("1: a", {"1": "a"}),
    ],
)
def test_values_are_texts(text: str, values: dict[str, str]) -> None:
    assert parameter_texts(text, source="it") == values


def test_a_null_of_a_person_is_refused_by_its_name() -> None:
    assert given_texts("A: ''\nB: 1", source="it") == {"A": "", "B": "1"}
    with pytest.raises(SpecError, match="B: is null") as refused:
        given_texts("A: 1\nB:\nC: null", source="it")
    assert [reason.field for reason in refused.value.reasons] == ["B", "C"]


def test_lists_and_mappings_are_yaml() -> None:
    values = parameter_texts("A: [1, 'no']\nB: {c: {d: e}}\nC: []", source="it")
    decoded = {name: decode(text) for name, text in values.items()}
    assert decoded == {"A": [1, "no"], "B": {"c": {"d": "e"}}, "C": []}


@pytest.mark.parametrize("text", ["- value", "value", "A: [value", "A: *value", "\0"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        parameter_texts(text, source="it")
