"""What a controller of packages leaves in a cluster, made by hand."""

import hashlib
import json
from collections.abc import Iterator

from kubernetes.cluster_client import ClusterClient, Object
from kubernetes.namespaces import Namespace

GROUP, VERSION = "kudo.dev", "kudo.dev/v1beta1"
UID = "6f0d2f6e-0000-4000-8000-000000000001"
HASH = hashlib.md5(b"of the former controller", usedforsecurity=False).hexdigest()

CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-config}
data: {mode: "{{ .Params.MODE }}"}
"""
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Name }}-server}
spec:
  replicas: {{ .Params.SIZE }}
  selector: {matchLabels: {app: {{ .Name }}}}
  template:
    metadata: {labels: {app: {{ .Name }}}}
    spec:
      containers: [{name: main, image: "example/main:{{ .Params.IMAGE }}"}]
      volumes: [{name: config, configMap: {name: {{ .Name }}-config}}]
"""
TASKS = [
    {"name": "config", "kind": "Apply", "spec": {"resources": ["config.yaml"]}},
    {"name": "server", "kind": "Apply", "spec": {"resources": ["server.yaml"]}},
]
PLAN = {
    "strategy": "serial",
    "phases": [
        {
            "name": "main",
            "strategy": "serial",
            "steps": [
                {"name": "config", "tasks": ["config"]},
                {"name": "server", "tasks": ["server"]},
            ],
        }
    ],
}
PARAMETERS = [
    {"name": "SIZE", "value-type": "integer", "required": True, "default": "1"},
    {"name": "IMAGE", "required": True, "default": "1"},
    {"name": "MODE", "required": False, "default": "calm"},
    {"name": "ZONES", "value-type": "array", "required": False, "default": "- a\n- b\n"},
]


def definitions() -> Iterator[Object]:
    """The three CustomResourceDefinitions."""
    for kind in ("Operator", "OperatorVersion", "Instance"):
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }


def resources(name: str = "store", **given: str) -> list[Object]:
    """The Operator, its OperatorVersion, and an Instance whose plan deploy has run."""
    status: Object = {
        "planStatus": {
            "deploy": {
                "name": "deploy",
                "uid": UID,
                "status": "COMPLETE",
                "lastUpdatedTimestamp": "2021-07-01T10:00:00Z",
                "phases": [],
            },
            "update": {"name": "update", "status": "NEVER_RUN", "uid": ""},
        }
    }
    version = {
        "operator": {"name": "shop", "kind": "Operator"},
        "version": "1.0.0",
        "templates": {"config.yaml": CONFIG, "server.yaml": SERVER},
        "tasks": TASKS,
        "parameters": PARAMETERS,
        "plans": {"deploy": PLAN, "update": PLAN},
    }
    spec = {"operatorVersion": {"name": "shop-1.0.0"}, "parameters": given}
    return [
        _resource("Operator", "shop", {"description": "A shop", "kubernetesVersion": "1.25"}),
        _resource("OperatorVersion", "shop-1.0.0", version),
        {**_resource("Instance", name, spec), "status": status},
    ]


def _resource(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def install_definitions(cluster: ClusterClient) -> None:
    for one in definitions():
        await cluster.apply(one)


async def applied(namespace: Namespace, instance: Object, **values: str) -> list[Object]:
    """The objects of an instance, as its controller applies them: with its labels, annotations,
    owner, and its own hash; no field of them belongs to us."""
    name = instance["metadata"]["name"]
    mode, image = values.get("MODE", "calm"), values.get("IMAGE", "1")
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-config"},
        "data": {"mode": mode},
    }
    labels = {"heritage": "kudo", "kudo.dev/operator": "shop", "kudo.dev/instance": name}
    annotations = {"kudo.dev/operator-version": "1.0.0", "kudo.dev/dependencies-hash": HASH}
    server: Object = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{name}-server"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, **labels}, "annotations": annotations},
                "spec": {
                    "containers": [{"name": "main", "image": f"example/main:{image}"}],
                    "volumes": [{"name": "config", "configMap": {"name": f"{name}-config"}}],
                },
            },
        },
    }
    owner = {
        "apiVersion": VERSION,
        "kind": "Instance",
        "name": name,
        "uid": instance["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made: list[Object] = []
    for one in (config, server):
        kept = json.dumps(one)
        metadata: Object = {
            "name": one["metadata"]["name"],
            "namespace": namespace.name,
            "labels": labels,
            "annotations": {
                "kudo.dev/plan": "deploy",
                "kudo.dev/last-plan-execution-uid": UID,
                "kudo.dev/last-applied-configuration": kept,
            },
            "ownerReferences": [owner],
        }
        made.append(await namespace.cluster.create({**one, "metadata": metadata}))
    return made
