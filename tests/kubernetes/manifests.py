"""Objects that tests apply, as small as the API server takes them."""

from typing import Any

from kubernetes.cluster_client import Object
from temporal_plans.worker.control_plane.stages import LABEL, PodFate

_CONTAINERS = [{"name": "main", "image": "example/main:1"}]


DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.tests.example"},
    "spec": {
        "group": "tests.example",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
"""The kind ``Thing`` of ``tests.example/v1``, in namespaces."""


def pod(name: str, fate: PodFate | None = None) -> Object:
    """A bare pod of one container."""
    metadata = {"name": name, "labels": _labels(name, fate)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec()}


def deployment(name: str, *, replicas: int = 1, fate: PodFate | None = None) -> Object:
    """A Deployment, whose pods have the label ``app`` with its name."""
    return _workload("apps/v1", "Deployment", name, fate, replicas=replicas)


def stateful_set(name: str, *, replicas: int = 1, storage: str | None = None) -> Object:
    """A StatefulSet; with ``storage`` (``1Gi``) each pod has a claim ``data``."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
        },
    }
    more: dict[str, Any] = {"volumeClaimTemplates": [claim]} if storage else {}
    return _workload(
        "apps/v1", "StatefulSet", name, None, replicas=replicas, serviceName=name, **more
    )


def job(name: str, *, fate: PodFate | None = None) -> Object:
    """A Job of one pod, which is tried once."""
    spec = {
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": _labels(name, fate)},
            "spec": {**_spec(), "restartPolicy": "Never"},
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: str) -> Object:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _workload(version: str, kind: str, name: str, fate: PodFate | None, **spec: Any) -> Object:
    template = {"metadata": {"labels": _labels(name, fate)}, "spec": _spec()}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "selector": selector, "template": template},
    }


def _labels(name: str, fate: PodFate | None) -> dict[str, str]:
    return {"app": name} | ({LABEL: fate.value} if fate else {})


def _spec() -> Object:
    return {"containers": [dict(container) for container in _CONTAINERS]}
