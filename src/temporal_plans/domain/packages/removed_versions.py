"""Versions of APIs that Kubernetes has removed, and what takes their place.

Packages of those years still write them. The kinds here have a successor that can say the same.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

from temporal_plans.domain.packages.manifests import Manifest, Object, entries, part

_RBAC, _DEFINITIONS = "rbac.authorization.k8s.io", "apiextensions.k8s.io"


def raised(manifest: Manifest) -> Object:
    """Return a manifest in the version that clusters have today; the same one where it has it."""
    successor = _successor(manifest)
    if successor is None:
        return dict(manifest)
    version, converted = successor
    return {**converted(deepcopy(dict(manifest))), "apiVersion": version}


def raised_version(manifest: Manifest) -> str | None:
    """Return the version to which a manifest is raised; None where clusters have its own."""
    successor = _successor(manifest)
    return successor[0] if successor else None


def _successor(manifest: Manifest) -> "_Successor | None":
    return _SUCCESSORS.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))


def _same(made: Object) -> Object:
    return made


def _definition(made: Object) -> Object:
    """In v1 each version has what v1beta1 has once for all: schema, columns, subresources."""
    spec = dict(part(made, "spec"))
    schema = _schema(spec)
    versions = [dict(one) for one in entries(spec, "versions")] or [
        {"name": spec.get("version"), "served": True, "storage": True}
    ]
    whole: dict[str, Any] = {"schema": schema}
    if "subresources" in spec:
        whole["subresources"] = spec["subresources"]
    if "additionalPrinterColumns" in spec:
        whole["additionalPrinterColumns"] = spec["additionalPrinterColumns"]
    spec["versions"] = [_version({**whole, **one}) for one in versions]
    if "conversion" in spec:
        spec["conversion"] = _conversion(part(spec, "conversion"))
    preserving = spec.get("preserveUnknownFields", True) is not False
    if preserving:
        for one in spec["versions"]:
            one["schema"] = _open(one["schema"])
    for key in _OF_VERSIONS:
        spec.pop(key, None)
    return {**made, "spec": spec}


_OF_VERSIONS = (
    "version",
    "validation",
    "subresources",
    "additionalPrinterColumns",
    "preserveUnknownFields",
)


def _schema(spec: Manifest) -> Object:
    return deepcopy(dict(part(spec, "validation"))) or {"openAPIV3Schema": {"type": "object"}}


def _version(one: Object) -> Object:
    columns = [
        {("jsonPath" if key == "JSONPath" else key): value for key, value in column.items()}
        for column in entries(one, "additionalPrinterColumns")
    ]
    return {**one, "additionalPrinterColumns": columns} if columns else one


def _open(schema: Object) -> Object:
    """v1beta1 keeps fields that the schema does not know, unless the definition says otherwise."""
    whole = part(schema, "openAPIV3Schema")
    kept = {"type": "object", **whole, "x-kubernetes-preserve-unknown-fields": True}
    return {**schema, "openAPIV3Schema": kept}


def _conversion(conversion: Manifest) -> Object:
    made = dict(conversion)
    webhook: Object = {}
    if "webhookClientConfig" in made:
        webhook["clientConfig"] = made.pop("webhookClientConfig")
    if "conversionReviewVersions" in made:
        webhook["conversionReviewVersions"] = made.pop("conversionReviewVersions")
    return {**made, "webhook": webhook} if "clientConfig" in webhook else made


_Successor = tuple[str, Callable[[Object], Object]]

_SUCCESSORS: Mapping[tuple[str, str], _Successor] = {
    ("policy/v1beta1", "PodDisruptionBudget"): ("policy/v1", _same),
    **{
        (f"{_RBAC}/{version}", kind): (f"{_RBAC}/v1", _same)
        for version in ("v1alpha1", "v1beta1")
        for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    },
    (f"{_DEFINITIONS}/v1beta1", "CustomResourceDefinition"): (
        f"{_DEFINITIONS}/v1",
        cast(Callable[[Object], Object], _definition),
    ),
}
