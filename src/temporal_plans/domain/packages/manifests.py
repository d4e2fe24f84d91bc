"""Parts of manifests. A manifest was rendered from a template: no part has a certain type."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

Manifest = Mapping[str, Any]
Object = dict[str, Any]

_WITH_PODS = frozenset(
    {
        ("apps", "StatefulSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "DaemonSet"),
        ("extensions", "Deployment"),
        ("extensions", "ReplicaSet"),
        ("extensions", "DaemonSet"),
        ("", "ReplicationController"),
        ("batch", "Job"),
    }
)


def group_kind(manifest: Manifest) -> tuple[str, str]:
    """Return the API group, empty for the core's, and the kind."""
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    return group, str(manifest.get("kind", ""))


def name_of(manifest: Manifest) -> str:
    """Return the name; empty without one."""
    name = part(manifest, "metadata").get("name")
    return name if isinstance(name, str) else ""


def pod_template_path(manifest: Manifest) -> tuple[str, ...]:
    """Return the keys that lead to the template of its pods; none for a kind without one."""
    kind = group_kind(manifest)
    if kind == ("batch", "CronJob"):
        return ("spec", "jobTemplate", "spec", "template")
    return ("spec", "template") if kind in _WITH_PODS else ()


def part(value: object, *path: str) -> Manifest:
    """Return the mapping at a path; an empty one where there is none."""
    for key in path:
        value = cast(Manifest, value).get(key) if isinstance(value, Mapping) else None
    return cast(Manifest, value) if isinstance(value, Mapping) else {}


def entries(value: Manifest, key: str) -> Iterator[Manifest]:
    """Yield the mappings in the list under a key."""
    found = value.get(key)
    if isinstance(found, list):
        for one in cast(list[object], found):
            if isinstance(one, Mapping):
                yield cast(Manifest, one)


def text(value: Manifest, key: str) -> str:
    """Return the text under a key; an empty one where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def number(value: Manifest, key: str) -> int:
    """Return the integer under a key; 0 where there is none."""
    found = value.get(key)
    return found if isinstance(found, int) else 0


def put(target: Object, path: tuple[str, ...], added: Mapping[str, str]) -> None:
    """Add entries to the mapping at a path in place, which is made where it is absent or null.
    Where something else is in the way nothing is added: the API server says what is wrong."""
    inner = target
    for key in path:
        if inner.get(key) is None:
            inner[key] = {}
        if not isinstance(inner[key], dict):
            return
        inner = cast(Object, inner[key])
    inner.update(added)
