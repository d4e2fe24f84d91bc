"""The Secrets and ConfigMaps that keep the files of Pipe tasks."""

import posixpath
from base64 import b64encode
from typing import Any

from temporal_plans.domain.packages.manifests import Manifest, part
from temporal_plans.domain.packages.pipes.env_file import read_env_file
from temporal_plans.domain.packages.pipes.pod import file_path
from temporal_plans.domain.packages.tasks.pipe import PipeFile

FILE_SIZE_LIMIT = 1_048_576
"""Bytes of a file: what a Secret or a ConfigMap can keep."""

STEP_RUN = "temporal-plans/step-run"
"""The annotation with the token of the step's run for which an object was made."""

SECRET = "Secret"


def reference(file: PipeFile, name: str) -> dict[str, Any]:
    """Return the object that keeps a file, without the content."""
    return {"apiVersion": "v1", "kind": file.kind, "metadata": {"name": name}}


def artefact(file: PipeFile, name: str, content: bytes) -> dict[str, Any]:
    """Return the object that keeps the content of a file. Raises SpecError for an env file with
    wrong lines."""
    made = reference(file, name)
    if file.kind == SECRET:
        made["type"] = "Opaque"
    if file.env_file:
        values = read_env_file(content)
        encoded = {key: _base64(value.encode()) for key, value in values.items()}
        return {**made, "data": encoded if file.kind == SECRET else values}
    field = "data" if file.kind == SECRET else "binaryData"
    return {**made, field: {posixpath.basename(file_path(file)): _base64(content)}}


def for_step_run(manifest: Manifest, token: str) -> dict[str, Any]:
    """Return an object with the token of the step's run that makes it."""
    metadata = part(manifest, "metadata")
    annotations = {**part(metadata, "annotations"), STEP_RUN: token}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_of_step_run(live: Manifest | None, token: str) -> bool:
    """Return whether an object was made for the step's run of this token."""
    if live is None or not token:
        return False
    return bool(part(live, "metadata", "annotations").get(STEP_RUN) == token)


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
