"""Plain scalars of YAML 1.1 as Go programs read them, and what is particular of that mode."""

import pytest

from temporal_plans.loading.text.document import read_yaml
from temporal_plans.loading.text.plain_scalars import yaml_1_1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("y", "Y", "yes", "YES", "on", "On", "true", "TRUE")),
        *((text, False) for text in ("n", "N", "no", "NO", "off", "Off", "false", "FALSE")),
        ("yEs", "yEs"),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("=", "="),
        ("1e3", 1000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("0o17", 15),
        ("0777", 511),
        ("-010", -8),
        ("08", 8.0),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("+5", 5),
        ("-", "-"),
        (".", "."),
        ("0x", "0x"),
        ("1.2.3", "1.2.3"),
        ("_1", "_1"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9007199254740993", 9007199254740993),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    found = yaml_1_1(text)
    assert (type(found), found) == (type(value), value)


def test_keys_become_texts_and_quotes_and_tags_keep_texts() -> None:
    text = "yes: 1\n1: 2\n1.50: 3\n'yes': x\n\"no\": 'no'\nt: !!str 010\nq: '010'\n"
    document = read_yaml(text, scalars="yaml-1.1", source="t")
    assert document.value == {
        "true": 1,
        "1": 2,
        "1.5": 3,
        "yes": "x",
        "no": "no",
        "t": "010",
        "q": "010",
    }
    assert not document.problems


def test_the_last_of_equal_keys_has_precedence_and_is_a_problem() -> None:
    document = read_yaml("a: 1\nb: 0\na: 2\n", scalars="yaml-1.1", source="t")
    assert document.value == {"a": 2, "b": 0}
    assert [(one.field, one.line) for one in document.problems] == [("a", 3)]


def test_the_texts_of_typed_scalars_are_kept() -> None:
    document = read_yaml("a: 3.10\nb: '3.10'\nc: [yes, x]\n", scalars="yaml-1.1", source="t")
    assert document.plain == {"a": "3.10", "c.0": "yes"}
