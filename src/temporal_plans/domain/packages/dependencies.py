"""The ConfigMaps and Secrets that pods read, and the hash of them in the template of the pods: when
one changes, the pods are replaced as soon as their workload is applied again.

The hash of a Job's template would only keep the Job from being applied again: it has none.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy

from pydantic import Field

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import (
    Manifest,
    Object,
    entries,
    group_kind,
    part,
    pod_template_path,
    put,
)
from temporal_plans.domain.values.model import CompactValue

HASH_KEY = "kudo.dev/dependencies-hash"
SKIP_KEY = "kudo.dev/skip-hash-calculation"
_ABSENT = bytes(16)
_CONTAINERS = ("containers", "initContainers")


def dependencies(manifest: Manifest) -> tuple[ObjectRef, ...]:
    """Return what the pods of an object read, sorted: pull secrets, volumes, and variables."""
    path = pod_template_path(manifest)
    if not path or group_kind(manifest) == ("batch", "Job"):
        return ()
    namespace = part(manifest, "metadata").get("namespace")
    found = set(_of_pod(part(manifest, *path, "spec")))
    return tuple(
        ObjectRef(
            api_version="v1",
            kind=kind,
            namespace=namespace if isinstance(namespace, str) else "",
            name=name,
        )
        for kind, name in sorted(found)
    )


class KeptHash(CompactValue):
    """The hash that a former controller wrote into the template of an object's pods (empty: none),
    and what we compute of the same dependencies. As long as that is the same, ``live`` stays."""

    ref: ObjectRef
    computed: str = Field(max_length=100)
    live: str = Field(default="", max_length=100)


def with_hash(
    manifest: Manifest,
    known: Mapping[tuple[str, str, str, str], Manifest | None],
    kept: Sequence[KeptHash] = (),
) -> Object:
    """Return an object with the hash of its dependencies, which ``known`` has by key. ``kept`` are
    hashes of a former controller, in place of equal ones of ours."""
    made: Object = deepcopy(dict(manifest))
    if found := dependencies(manifest):
        digest = dependencies_hash([known.get(one.key) for one in found])
        key = ObjectRef.of(manifest).key
        former = [one for one in kept if (one.ref.key, one.computed) == (key, digest)]
        digest = former[0].live if former else digest
        if not digest:
            return made
        put(made, (*pod_template_path(made), "metadata", "annotations"), {HASH_KEY: digest})
    return made


def dependencies_hash(found: Sequence[Manifest | None]) -> str:
    """Return the hash of ConfigMaps and Secrets in their order; None is one that is not there."""
    digests = [_ABSENT if one is None else _digest(one) for one in found]
    return hashlib.md5(b"".join(digests), usedforsecurity=False).hexdigest()


def _digest(found: Manifest) -> bytes:
    """Of the content alone, in the form that the API server keeps: labels and the like may be
    others', and the same object has the same hash as rendered and as it is in the cluster."""
    if SKIP_KEY in part(found, "metadata", "annotations"):
        return _ABSENT
    texts = {
        key: base64.b64encode(str(value).encode()).decode()
        for key, value in part(found, "stringData").items()
    }
    content = {
        "name": part(found, "metadata").get("name"),
        "data": {**part(found, "data"), **texts},
        "binaryData": dict(part(found, "binaryData")),
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.md5(text.encode(), usedforsecurity=False).digest()


def _of_pod(spec: Manifest) -> Iterator[tuple[str, str]]:
    for secret in entries(spec, "imagePullSecrets"):
        yield from _named("Secret", secret)
    for volume in entries(spec, "volumes"):
        yield from _named("ConfigMap", part(volume, "configMap"))
        yield from _named("Secret", part(volume, "secret"), "secretName")
        for source in entries(part(volume, "projected"), "sources"):
            yield from _named("ConfigMap", part(source, "configMap"))
            yield from _named("Secret", part(source, "secret"))
    for key in _CONTAINERS:
        for container in entries(spec, key):
            yield from _of_container(container)


def _of_container(container: Manifest) -> Iterator[tuple[str, str]]:
    for variable in entries(container, "env"):
        yield from _named("ConfigMap", part(variable, "valueFrom", "configMapKeyRef"))
        yield from _named("Secret", part(variable, "valueFrom", "secretKeyRef"))
    for source in entries(container, "envFrom"):
        yield from _named("ConfigMap", part(source, "configMapRef"))
        yield from _named("Secret", part(source, "secretRef"))


def _named(kind: str, source: Manifest, key: str = "name") -> Iterator[tuple[str, str]]:
    name = source.get(key)
    if isinstance(name, str) and name and len(name) <= 300:
        yield kind, name
