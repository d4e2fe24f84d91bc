"""The pod of a Pipe task: what its template may say, and what is made of it.

The one init container makes the files in a volume. Then the *waiter*, which does nothing, keeps the
pod and its volume until the files have been read.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from temporal_plans.domain.packages.manifests import Manifest, entries, part, text
from temporal_plans.domain.packages.tasks.pipe import PipeFile
from temporal_plans.domain.values.refusal import Reason

WAITER = "waiter"
WAITER_IMAGE = "busybox"
"""It needs ``sh``, ``sleep``, ``stat`` and ``tar``."""

POD_ANNOTATION = "kudo.dev/pipepod"

_ON_FAILURE = "OnFailure"
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_LIMIT = 253


def pod_faults(manifest: Manifest, files: Sequence[PipeFile]) -> Iterator[Reason]:
    """Yield what is wrong with a rendered pod. Fields are paths in it, and of ``pipe``."""
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "Pod"):
        found = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        yield Reason(field="kind", problem="is no v1 Pod", value=found, fix="write one Pod")
        return
    spec = part(manifest, "spec")
    if spec.get("containers"):
        fix = "make the files in the init container: the other is added"
        yield Reason(field="spec.containers", problem="must be absent", fix=fix)
    if spec.get("restartPolicy") not in (None, _ON_FAILURE):
        yield Reason(
            field="spec.restartPolicy",
            problem=f"must be absent or {_ON_FAILURE}",
            value=spec["restartPolicy"],
        )
    faults = [*_init_faults(spec), *_volume_faults(spec)]
    yield from faults or _mount_faults(spec, files)


def pipe_pod(manifest: Manifest, name: str, image: str = WAITER_IMAGE) -> dict[str, Any]:
    """Return the pod to apply. ``pod_faults`` must have found none."""
    spec, metadata = part(manifest, "spec"), part(manifest, "metadata")
    (init,) = entries(spec, "initContainers")
    (mount,) = _mounts(spec)
    waiter: dict[str, Any] = {
        "name": WAITER,
        "image": image,
        "command": ["/bin/sh", "-c", "sleep infinity"],
        "volumeMounts": [{**mount, "readOnly": True}],
    }
    if security := init.get("securityContext"):
        # it may read what this user made, and a cluster that takes the one takes the other
        waiter["securityContext"] = security
    annotations = {**part(metadata, "annotations"), POD_ANNOTATION: "true"}
    return {
        **manifest,
        "metadata": {**metadata, "name": name, "annotations": annotations},
        "spec": {**spec, "restartPolicy": _ON_FAILURE, "containers": [waiter]},
    }


def file_path(file: PipeFile) -> str:
    """Return the absolute path of a file in the pod."""
    return posixpath.normpath(file.file or file.env_file)


def _init_faults(spec: Manifest) -> Iterator[Reason]:
    containers = list(entries(spec, "initContainers"))
    if len(containers) != 1:
        fix = "write one, which makes the files"
        problem = f"has {len(containers)} entries instead of one"
        yield Reason(field="spec.initContainers", problem=problem, fix=fix)
        return
    (init,) = containers
    if init.get("restartPolicy") is not None:
        field = "spec.initContainers.0.restartPolicy"
        fix = "remove it: the container must end"
        yield Reason(field=field, problem="must be absent", value=init["restartPolicy"], fix=fix)
    if text(init, "name") == WAITER:
        problem = "is the name of the container that is added"
        yield Reason(
            field="spec.initContainers.0.name", problem=problem, value=WAITER, fix="use another"
        )


def _volume_faults(spec: Manifest) -> Iterator[Reason]:
    count = len(_shared(spec))
    if count != 1:
        problem = f"has {count} emptyDir volumes instead of one"
        fix = "write one, in which the init container makes the files"
        yield Reason(field="spec.volumes", problem=problem, fix=fix)


def _mount_faults(spec: Manifest, files: Sequence[PipeFile]) -> Iterator[Reason]:
    mounts, field = _mounts(spec), "spec.initContainers.0.volumeMounts"
    if len(mounts) != 1:
        (volume,) = _shared(spec)
        problem = f"has the volume {text(volume, 'name')} {len(mounts)} times instead of once"
        yield Reason(field=field, problem=problem, fix="mount the emptyDir volume once")
        return
    (mount,) = mounts
    if "subPathExpr" in mount:
        yield Reason(field=field, problem="has a subPathExpr", fix="write a subPath instead")
    for index, file in enumerate(files):
        yield from _path_faults(index, file, text(mount, "mountPath"))


def _path_faults(index: int, file: PipeFile, folder: str) -> Iterator[Reason]:
    key, path = ("file", file.file) if file.file else ("envFile", file.env_file)
    field = f"pipe.{index}.{key}"
    if not is_below(folder, path):
        problem = f"is not below {folder}, where the volume is mounted, or hidden in it"
        yield Reason(field=field, problem=problem, value=path, fix=f"write {folder}/NAME")
        return
    name = posixpath.basename(file_path(file))
    if not is_key(name):
        fix = f"use at most {_KEY_LIMIT} letters, digits, -, _ and ."
        yield Reason(field=field, problem="has a name that can't be a key", value=name, fix=fix)


def is_below(folder: str, path: str) -> bool:
    """Return whether an absolute path is in a folder, or deeper, and not hidden there."""
    if not (folder.startswith("/") and path.startswith("/")) or "\0" in path:
        return False
    return not posixpath.relpath(path, folder).startswith(".")


def is_key(name: str) -> bool:
    """Return whether a text can be a key of a Secret or a ConfigMap."""
    return (
        _KEY.fullmatch(name) is not None and len(name) <= _KEY_LIMIT and not name.startswith("..")
    )


def _shared(spec: Manifest) -> list[Manifest]:
    return [volume for volume in entries(spec, "volumes") if "emptyDir" in volume]


def _mounts(spec: Manifest) -> list[Manifest]:
    """The mounts of the shared volume in the init container."""
    (volume,) = _shared(spec)
    (init,) = entries(spec, "initContainers")
    return [
        mount
        for mount in entries(init, "volumeMounts")
        if text(mount, "name") == text(volume, "name")
    ]
