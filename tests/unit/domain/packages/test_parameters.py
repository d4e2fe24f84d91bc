"""Values of parameters: as they are stored, checked, and seen by templates."""

import pytest

from temporal_plans.domain.packages.parameters import (
    Parameter,
    boolean,
    immutable_faults,
    seen_by_templates,
    value_faults,
)
from temporal_plans.domain.packages.printing import printed
from temporal_plans.loading.packages.structures import decode, encode


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (1.0, "1"),
        (0.5, "0.5"),
        (1000000, "1000000"),
        (1e6, "1000000"),
        (2097152, "2097152"),
        (9007199254740993, "9007199254740993"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1234567.5, "1234567.5"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1e6, "-1000000"),
        (True, "true"),
        ("x", "x"),
        (["a", 1], "[a 1]"),
        ({"b": 1, "a": None}, "map[a:<nil> b:1]"),
    ],
)
def test_printed(value: object, text: str) -> None:
    assert printed(value) == text


def parameter(**fields: object) -> Parameter:
    return Parameter.model_validate({"name": "P", **fields})


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            "integer",
            ["0", "-1", "+5", "010", "9223372036854775807", "-9223372036854775808"],
            ["1e3", "1.0", "x", " 1", "1_000", "9223372036854775808", "٣", "9" * 5000],
        ),
        ("number", ["1", "1e3", "-.5", "1.", "+2"], ["inf", "nan", "1e999", "x", "1_0", "0x1"]),
        ("boolean", ["1", "t", "TRUE", "true", "True", "0", "F", "False"], ["yes", "on", "tRUE"]),
        ("array", ["[]", "- a\n- b", "[1, {a: b}]", "null"], ["a", "{a: b}", "[", "1"]),
        ("map", ["{}", "a: b", "null"], ["a", "[a]", "{", "1"]),
        ("string", ["", "anything"], []),
        ("", ["anything"], []),
        ("text", [], ["x"]),
    ],
)
def test_types(kind: str, good: list[str], bad: list[str]) -> None:
    one = parameter(type=kind)
    assert {text: one.type_fault(text, decode) for text in good} == dict.fromkeys(good)
    assert [text for text in bad if one.type_fault(text, decode) is None] == []


def test_the_order_of_checks_is_presence_then_type_then_choice() -> None:
    one = parameter(type="integer", enum=["1", "2"])
    assert one.fault("", decode) == "is required but has no value"
    assert one.fault("x", decode) == "must be a whole number of 64 bits"
    assert one.fault("3", decode) == "must be one of 1, 2"
    assert one.fault("2", decode) is None
    assert parameter(required=False, type="integer").fault("", decode) is None
    assert parameter(default="", type="integer").fault("", decode) is None


def test_templates_see_texts_and_structures_with_floats() -> None:
    defined = [
        parameter(name="TEXT", default="a"),
        parameter(name="COUNT", type="integer", default="3"),
        parameter(name="FLAG", type="boolean", default="false"),
        parameter(name="NONE", required=False),
        parameter(name="LIST", type="array", default="[1, {deep: [2, true]}]"),
        parameter(name="MAP", type="map", default="1: {y: 2}"),
        parameter(name="EMPTY", type="map", default=""),
    ]
    seen = seen_by_templates(defined, {"TEXT": "given", "UNKNOWN": "x"}, decode)
    assert seen == {
        "TEXT": "given",
        "COUNT": "3",
        "FLAG": "false",
        "NONE": "",
        "LIST": [1.0, {"deep": [2.0, True]}],
        "MAP": {"1": {"true": 2.0}},
        "EMPTY": None,
    }
    assert repr(seen["LIST"]) == "[1.0, {'deep': [2.0, True]}]", "the types count, too"


def test_all_faults_of_values_are_found_at_once() -> None:
    defined = [
        parameter(name="MUST"),
        parameter(name="COUNT", type="integer", default="3"),
        parameter(name="FINE", default="x"),
    ]
    faults = list(value_faults(defined, {"COUNT": "three", "CONT": "1"}, decode))
    assert [(one.field, one.problem) for one in faults] == [
        ("CONT", "is not a parameter of the package"),
        ("MUST", "is required but has no value"),
        ("COUNT", "must be a whole number of 64 bits"),
    ]
    assert faults[0].fix == "did you mean COUNT?"
    assert faults[1].fix == "give a value with -p MUST=VALUE"


def test_an_immutable_parameter_keeps_the_value_in_effect() -> None:
    defined = [parameter(name="DISK", default="5Gi", immutable=True), parameter(name="X")]
    assert not list(immutable_faults(defined, {}, {"DISK": "5Gi", "X": "1"}))
    assert [one.field for one in immutable_faults(defined, {}, {"DISK": "6Gi"})] == ["DISK"]
    assert [one.field for one in immutable_faults(defined, {"DISK": "6Gi"}, {})] == ["DISK"]


def test_booleans() -> None:
    assert [boolean(text) for text in ("T", "0", "", "yes")] == [True, False, None, None]


@pytest.mark.parametrize(
    "value",
    [
        [{"foo": "bar"}],
        {"a": ["y", "010", "12:30", "1e3", "=", "null", "", "~", "0o17", "1_0", "off", "# x"]},
        {"text": "two\nlines\n", "other": " indented\n  more", "n": None, "t": True},
        [1, -2, 9007199254740993, 0.5, 1e30, {"deep": [[1], {"x": [2]}]}],
        ["tab\there", "bell\a", "emoji \U0001f600", "a: b", "- c", "'", '"', "trailing "],
    ],
)
def test_structures_come_back_as_they_were(value: object) -> None:
    assert decode(encode(value)) == value


def test_a_list_of_mappings_is_written_as_yaml() -> None:
    assert encode([{"foo": "bar"}]) == "- foo: bar\n"
