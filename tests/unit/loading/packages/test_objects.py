"""The objects in rendered texts."""

import pytest

from temporal_plans.loading.packages.objects import OBJECT_LIMIT, read_objects

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
THING = "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: it}\nother: {x: 1}\n"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param(CONFIG, ["ConfigMap"], id="known-kind"),
        pytest.param(THING, ["Thing"], id="unknown-kind"),
        pytest.param(f"{CONFIG}---\n{THING}", ["ConfigMap", "Thing"], id="several"),
        pytest.param(f"---\n{CONFIG}--- # more\n{THING}---\n", ["ConfigMap", "Thing"], id="marks"),
        pytest.param("", [], id="empty"),
        pytest.param("# nothing\n---\n\n---\n  # either\n", [], id="comments-and-blank-lines"),
        pytest.param(f"# first\n---\n{CONFIG}---\n# last\n", ["ConfigMap"], id="around"),
    ],
)
def test_documents(text: str, kinds: list[str]) -> None:
    read = read_objects(text)
    assert ([one["kind"] for one in read.objects], read.faults) == (kinds, ())


def test_fields_of_unknown_kinds_stay() -> None:
    (thing,) = read_objects(THING).objects
    assert thing["other"] == {"x": 1}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: [", 1, "expected"),
        (f"{CONFIG}---\na: [\n", 5, "expected"),
        ("- a", 1, "not a mapping"),
        ("text", 1, "not a mapping"),
        ("metadata: {name: a}", 1, "apiVersion"),
    ],
)
def test_what_is_no_object(text: str, line: int, problem: str) -> None:
    (fault,) = read_objects(text).faults
    assert problem in str(fault)
    assert fault.line is not None
    assert fault.line >= line


def test_there_is_a_limit() -> None:
    (fault,) = read_objects("---\n".join([CONFIG] * (OBJECT_LIMIT + 1))).faults
    assert f"more than {OBJECT_LIMIT} objects" in fault.problem
