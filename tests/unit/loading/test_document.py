"""Strict YAML and JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.text.document import Scalars, read_json, read_yaml


@pytest.mark.parametrize(
    ("text", "typed", "text_only"),
    [
        pytest.param("1.20", 1.2, "1.20", id="version"),
        pytest.param("no", "no", "no", id="no-is-text"),
        pytest.param("true", True, "true", id="boolean"),
        pytest.param("12:30", "12:30", "12:30", id="no-sexagesimal"),
        pytest.param("2024-01-01", "2024-01-01", "2024-01-01", id="date-is-text"),
        pytest.param("0x1F", 31, "0x1F", id="hexadecimal"),
        pytest.param("-1.5e3", -1500.0, "-1.5e3", id="exponent"),
        pytest.param("1e999", "1e999", "1e999", id="no-infinity"),
        pytest.param('"5"', "5", "5", id="quoted"),
        pytest.param("null", None, None, id="null"),
        pytest.param("", None, None, id="empty"),
        pytest.param("'null'", "null", "null", id="quoted-null"),
    ],
)
def test_scalars(text: str, typed: object, text_only: object) -> None:
    kinds: tuple[tuple[Scalars, object], ...] = (("typed", typed), ("text", text_only))
    for scalars, expected in kinds:
        document = read_yaml(f"x: {text}", scalars=scalars, source="t")
        assert repr(document.value) == repr({"x": expected}), "the type counts too"


def test_lines_by_path_and_by_name() -> None:
    text = "a:\n  b: 1\nc:\n- name: d\n  e: 2\n"
    document = read_yaml(text, scalars="text", source="t")
    assert document.line("a.b") == 2
    assert document.line("c.0.e") == 5
    assert document.line("c.d") == 4
    assert document.line("a.unknown.deep") == 1
    assert document.line("unknown") is None


def test_merge_keys_and_aliases() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{x: 4}, *a]}\n"
    document = read_yaml(text, scalars="typed", source="t")
    assert document.value == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 4, "y": 2},
    }
    assert not document.problems


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        pytest.param("a: 1\na: 2", "a", "duplicate key", id="duplicate"),
        pytest.param("p: {a: 1, a: 2}", "p.a", "duplicate key", id="duplicate-inside"),
        pytest.param("a: !x 1", "a", "tags are not supported", id="tag"),
        pytest.param("a: {{X}}", "a", "a key must be text", id="not-rendered"),
        pytest.param("a: {<<: 3}", "a", "<< takes a mapping", id="merge-of-text"),
    ],
)
def test_faults_that_leave_the_rest_readable(text: str, path: str, message: str) -> None:
    (problem,) = read_yaml(text, scalars="text", source="t").problems
    assert problem.field == path
    assert problem.problem.startswith(message)
    assert problem.line is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "while parsing", id="not-closed"),
        pytest.param("a: 1\n\tb: 2", "t:2:", id="tab"),
        pytest.param("a: 1\n---\nb: 2", "single document", id="two-documents"),
        pytest.param("a: *b", "undefined alias", id="unknown-alias"),
        pytest.param("a: &a [*a]", "refers to itself", id="circle"),
        pytest.param("a: \x00", "control characters", id="control-character"),
        pytest.param("[" * 5000, "t", id="deep-flow"),
        pytest.param("- " * 500, "too deep", id="deep-block"),
        pytest.param(
            "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
            + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)),
            "expands to more than",
            id="aliases-that-multiply",
        ),
    ],
)
def test_texts_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_yaml(text, scalars="text", source="t")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        pytest.param("a:\n  b: [1,\nc: 2\n", 4, "(it begins in line 2)", id="not-closed"),
        pytest.param("a:\n\tb: 2\n", 2, "indent with spaces, not tabs", id="tab"),
        pytest.param("a: 1\nb: c: 2\n", 2, "is not YAML: mapping values", id="two-colons"),
        pytest.param("a: 1\nb: x\x01\n", 2, 'found "U+0001"', id="control-character"),
        pytest.param("a: 1\nb: &b [*b]\n", 2, "b.0 refers to itself", id="circle"),
    ],
)
def test_syntax_errors_say_where_and_what(text: str, line: int, told: str) -> None:
    with pytest.raises(SpecError) as raised:
        read_yaml(text, scalars="text", source="t")
    (problem,) = raised.value.reasons
    assert problem.line == line
    assert told in str(problem)


@pytest.mark.parametrize(
    ("text", "message"), [("", "is empty"), (" \n\n", "is empty"), ("# a: 1\n", "only comments")]
)
def test_empty_texts(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_yaml(text, scalars="text", source="t")


def test_zero_bytes_are_problems_with_their_place() -> None:
    text = 'a: 1\nb: ["x", "y\\0"]\nc: {"k\\x00": 1}\n'
    document = read_yaml(text, scalars="text", source="t")
    found = [(problem.field, problem.line, problem.problem) for problem in document.problems]
    assert found == [("b.1", 2, "contains a zero byte"), ("c", 3, "contains a zero byte")]
    data = read_yaml(text, scalars="typed", source="t")
    assert (data.value, data.problems) == ({"a": 1, "b": ["x", "y\0"], "c": {"k\0": 1}}, ())


def test_empty_json() -> None:
    with pytest.raises(SpecError, match="is empty"):
        read_json("\n", source="t")


def test_json_duplicates_are_problems() -> None:
    document = read_json('{"a": 1, "a": 2}', source="t")
    assert document.value == {"a": 1}
    assert [problem.field for problem in document.problems] == ["a"]


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', "[" * 100_000, '{"a": 1} x'])
def test_json_refusals(text: str) -> None:
    with pytest.raises(SpecError, match="is not JSON"):
        read_json(text, source="t")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcxyz-", min_size=1), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_json)
def test_json_is_read_alike_by_both(value: object) -> None:
    text = json.dumps({"value": value})
    assert read_yaml(text, scalars="typed", source="t").value == read_json(text, source="t").value


@given(st.text())
def test_nothing_but_spec_errors_escapes(text: str) -> None:
    problems: tuple[Reason, ...] = ()
    try:
        document = read_yaml(text, scalars="typed", source="t")
    except SpecError as error:
        problems = error.reasons
    else:
        json.dumps(document.value)
    assert all(problem.problem for problem in problems)
