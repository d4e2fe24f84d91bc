"""``toYaml``, beside what Go's yaml.v2 (2.3.0) wrote for the same values."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.loading.packages.go_yaml import to_yaml

WRITTEN: list[tuple[Any, str]] = json.loads(
    (Path(__file__).parent / "go_yaml.json").read_text("utf-8")
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2028\u2029"))

VALUES = st.recursive(
    TEXTS | st.booleans() | st.none(),
    lambda parts: st.lists(parts) | st.dictionaries(TEXTS, parts),
)


@pytest.mark.parametrize(("value", "text"), WRITTEN, ids=lambda part: repr(part)[:40])
def test_a_value_is_written_as_go_writes_it(value: object, text: str) -> None:
    assert to_yaml(value) == text


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader has no constructor for ``=``, which Go reads as a text."""


def _as_text(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:value", _as_text)


@given(VALUES)
def test_what_is_written_reads_as_the_same_value(value: object) -> None:
    assert yaml.load(to_yaml(value), Loader=_Loader) == value  # a safe one


def test_a_value_in_two_places_is_written_twice() -> None:
    part = {"a": "b"}
    assert to_yaml([part, part]) == "- a: b\n- a: b\n"


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, b"bytes"])
def test_what_yaml_has_no_word_for_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="has no YAML"):
        to_yaml(value)
