"""The files of a package, made of the resources that a controller kept of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from temporal_plans.domain.packages.left_instances import LeftPackage
from temporal_plans.domain.packages.manifests import entries, part
from temporal_plans.domain.packages.package import (
    API_VERSION,
    OPERATOR_FILE,
    PARAMETERS_FILE,
    TEMPLATES_FOLDER,
)
from temporal_plans.domain.packages.parameters import STRUCTURED
from temporal_plans.loading.packages.structures import decode

_OF_OPERATOR = (
    "description",
    "kudoVersion",
    "kubernetesVersion",
    "maintainers",
    "url",
    "namespaceManifest",
)
_OF_PARAMETER = (
    "name",
    "displayName",
    "description",
    "required",
    "trigger",
    "immutable",
)


def left_files(left: LeftPackage) -> dict[str, bytes]:
    """Return the files of a package by path. Raises ValueError for a default that is not YAML."""
    version = left.version
    operator: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "name": left.name,
        **{key: left.operator[key] for key in _OF_OPERATOR if left.operator.get(key)},
        "operatorVersion": version.get("version", ""),
        "appVersion": version.get("appVersion", ""),
        "tasks": version.get("tasks") or [],
        "plans": version.get("plans") or {},
    }
    parameters = {
        "apiVersion": API_VERSION,
        "parameters": [_parameter(one) for one in entries(version, "parameters")],
    }
    files = {OPERATOR_FILE: _written(operator), PARAMETERS_FILE: _written(parameters)}
    for key, template in part(version, "templates").items():
        files[f"{TEMPLATES_FOLDER}/{key}"] = str(template).encode()
    return files


def _parameter(kept: Mapping[str, Any]) -> dict[str, Any]:
    """All values are kept as texts, those of lists and mappings as YAML; files have them as they
    are. A list or mapping whose default is null has one, and needs no value."""
    made = {key: kept[key] for key in _OF_PARAMETER if kept.get(key) is not None}
    kind = kept.get("value-type") or ""
    if kind:
        made["type"] = kind
    structured = kind in STRUCTURED
    if (default := kept.get("default")) is not None:
        made["default"] = decode(default) if structured else default
        if made["default"] is None:
            made["required"] = False
    if choices := list(_texts(kept.get("enum"))):
        made["enum"] = [decode(one) for one in choices] if structured else choices
    return made


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from map(str, value)  # pyright: ignore[reportUnknownArgumentType]


def _written(value: object) -> bytes:
    """As JSON, in which no text looks like another type of YAML."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode()
