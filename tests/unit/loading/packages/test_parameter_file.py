"""Parameter files."""

import pytest

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.parameter_file import parameter_texts
from temporal_plans.loading.packages.structures import decode


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("null", {}),
        ("A: text", {"A": "text"}),
        ("A: ''", {"A": ""}),
        ("A: null\nB: 1", {"B": "1"}),
        ("A: 2097152", {"A": "2097152"}),
        ("A: 0.5", {"A": "0.5"}),
        ("A: yes", {"A": "true"}),
        ('A: "010"', {"A": "010"}),
        ("1: a", {"1": "a"}),
    ],
)
def test_values_are_texts(text: str, values: dict[str, str]) -> None:
    assert parameter_texts(text, "it") == values


def test_lists_and_mappings_are_yaml() -> None:
    values = parameter_texts("A: [1, 'no']\nB: {c: {d: e}}\nC: []", "it")
    decoded = {name: decode(text) for name, text in values.items()}
    assert decoded == {"A": [1, "no"], "B": {"c": {"d": "e"}}, "C": []}


@pytest.mark.parametrize("text", ["- secret", "secret", "A: [secret", "A: *secret", "\0"])
def test_what_is_no_mapping_is_refused_without_a_value(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        parameter_texts(text, "it")
    assert all(reason.value is None for reason in refused.value.reasons)
