"""Versions of APIs that clusters no longer have."""

from typing import Any

import pytest

from temporal_plans.domain.packages.removed_versions import raised, raised_version


def made(version: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "it"}, **more}


@pytest.mark.parametrize(
    ("version", "kind", "successor"),
    [
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("rbac.authorization.k8s.io/v1beta1", "Role", "rbac.authorization.k8s.io/v1"),
        ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
        ("rbac.authorization.k8s.io/v1alpha1", "RoleBinding", "rbac.authorization.k8s.io/v1"),
    ],
)
def test_a_kind_is_raised_as_it_is(version: str, kind: str, successor: str) -> None:
    assert raised(made(version, kind, spec={"a": 1})) == made(successor, kind, spec={"a": 1})
    assert raised_version(made(version, kind)) == successor


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("policy/v1", "PodDisruptionBudget"),
        ("policy/v1beta1", "PodSecurityPolicy"),
        ("extensions/v1beta1", "Ingress"),
    ],
)
def test_others_stay(version: str, kind: str) -> None:
    assert raised(made(version, kind)) == made(version, kind)
    assert raised_version(made(version, kind)) is None


def definition(**spec: Any) -> dict[str, Any]:
    common = {"group": "example.org", "names": {"plural": "things", "kind": "Thing"}}
    return made("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", spec={**common, **spec})


def test_a_definition_of_one_version() -> None:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    before = definition(
        version="v1",
        scope="Namespaced",
        validation=schema,
        subresources={"status": {}},
        additionalPrinterColumns=[{"name": "Age", "type": "date", "JSONPath": ".x"}],
    )
    after = raised(before)
    assert after["apiVersion"] == "apiextensions.k8s.io/v1"
    open_schema = {**schema["openAPIV3Schema"], "x-kubernetes-preserve-unknown-fields": True}
    assert after["spec"] == {
        "group": "example.org",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": open_schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".x"}],
            }
        ],
    }
    assert before["spec"]["version"] == "v1", "not in place"


def test_a_definition_of_several_versions() -> None:
    own = {"openAPIV3Schema": {"type": "object", "description": "own"}}
    common = {"openAPIV3Schema": {"type": "object", "description": "common"}}
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": True, "schema": own}]
    spec = raised(definition(versions=versions, validation=common, preserveUnknownFields=False))[
        "spec"
    ]
    assert [one["schema"] for one in spec["versions"]] == [common, own]


def test_a_definition_without_a_schema_keeps_all_fields() -> None:
    [version] = raised(definition(version="v1"))["spec"]["versions"]
    whole = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert version["schema"] == {"openAPIV3Schema": whole}


def test_a_webhook_of_a_definition_moves() -> None:
    conversion = {
        "strategy": "Webhook",
        "webhookClientConfig": {"url": "https://x"},
        "conversionReviewVersions": ["v1"],
    }
    spec = raised(definition(version="v1", conversion=conversion))["spec"]
    webhook = {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}
    assert spec["conversion"] == {"strategy": "Webhook", "webhook": webhook}
