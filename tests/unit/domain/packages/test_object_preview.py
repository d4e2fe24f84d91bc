"""What the server would make of an object, field by field, without values of secrets."""

from typing import Any

import pytest

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.object_preview import (
    FIELDS_LIMIT,
    VALUE_LIMIT,
    ObjectPreview,
    PreviewAction,
    compared,
)


def preview(before: Any, after: Any, kind: str = "ConfigMap") -> ObjectPreview:
    ref = ObjectRef(api_version="v1", kind=kind, namespace="here", name="it")
    base = {"apiVersion": "v1", "kind": kind}
    return compared(ref, base | before, base | after, lambda text: text.replace("hush", "***"))


def fields(before: Any, after: Any, kind: str = "ConfigMap") -> list[tuple[Any, ...]]:
    found = preview(before, after, kind).fields
    return [(one.field, one.before, one.after) for one in found]


def containers(*images: tuple[str, str]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "image": image} for name, image in images]}}


RUN = {"annotations": {"kudo.dev/last-plan-execution-uid": "1", "kudo.dev/plan": "a"}}


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"data": {"a": "1"}}, {"data": {"a": "1"}}, []),
        ({"data": {"a": "1"}}, {"data": {"a": "2"}}, [("data.a", '"1"', '"2"')]),
        ({"data": {"a": "1"}}, {"data": {}}, [("data.a", '"1"', None)]),
        ({}, {"data": {"a.b": 1}}, [("data", None, '{"a.b": 1}')]),
        ({"data": {}}, {"data": {"a.b": 1}}, [("data[a.b]", None, "1")]),
        (containers(("a", "1"), ("b", "1")), containers(("b", "2"), ("a", "1")),
         [("spec.containers[name=b].image", '"1"', '"2"')]),
        (containers(("a", "1")), containers(("c", "1")), [
            ("spec.containers[name=a]", '{"image": "1", "name": "a"}', None),
            ("spec.containers[name=c]", None, '{"image": "1", "name": "c"}'),
        ]),
        (containers(("a", "1"), ("a", "2")), containers(("a", "1")), [
            ("spec.containers", '[{"image": "1", "name": "a"}, {"image": "2", "name": "a"}]',
             '[{"image": "1", "name": "a"}]'),
        ]),
        ({"args": ["a"]}, {"args": ["a", "b"]}, [("args", '["a"]', '["a", "b"]')]),
        ({"metadata": {**RUN, "generation": 1, "resourceVersion": "1", "managedFields": []}},
         {"metadata": {"annotations": {}, "generation": 2, "resourceVersion": "2"}}, []),
        ({"status": {"phase": "a"}}, {"status": {"phase": "b"}}, []),
        ({"data": {"a": "1"}}, {"data": {"a": "say hush"}},
         [("data.a", "(hidden)", '"say ***"')]),
        ({"data": {"a": "hush"}}, {"data": {"a": "1"}}, [("data.a", '"***"', '"1"')]),
    ],
    ids=[
        "equal", "changed", "removed", "new mapping", "odd key", "by name", "other element",
        "names twice", "scalars", "of the run", "status", "new secret", "old secret",
    ],
)  # fmt: skip
def test_fields(before: Any, after: Any, found: list[tuple[Any, ...]]) -> None:
    assert fields(before, after) == found
    action = PreviewAction.CHANGED if found else PreviewAction.UNCHANGED
    assert preview(before, after).action is action


def test_a_secret_shows_no_value_but_its_type_and_labels() -> None:
    before = {
        "type": "Opaque",
        "data": {"a": "MQ=="},
        "metadata": {"labels": {"x": "1"}, "annotations": {"copy": "MQ=="}},
    }
    after = {"type": "Other", "data": {"b": "Mg=="}, "metadata": {"labels": {"x": "2"}}}
    assert fields(before, after, "Secret") == [
        ("type", '"Opaque"', '"Other"'),
        ("data.a", "(hidden)", None),
        ("data.b", None, "(hidden)"),
        ("metadata.labels.x", '"1"', '"2"'),
        ("metadata.annotations", "(hidden)", None),
    ]


def test_a_number_that_is_a_secret_is_hidden() -> None:
    ref = ObjectRef(api_version="v1", kind="ConfigMap", name="it")
    found = compared(ref, {"a": 1}, {"a": 4711}, lambda text: text.replace("4711", "***"))
    assert [(one.before, one.after) for one in found.fields] == [("(hidden)", '"(hidden)"')]


def test_all_is_bounded() -> None:
    many = {"data": {f"key-{number}": "x" * 500 for number in range(FIELDS_LIMIT + 7)}}
    found = preview({"data": {}}, many)
    assert (len(found.fields), found.more) == (FIELDS_LIMIT, 7)
    assert all(len(one.after or "") == VALUE_LIMIT for one in found.fields)
