"""Fields of an applied object that others have set since, as far as the API server tells.

It keeps for each client which fields it set last, and when. A client that changes a field takes it
over; so what another client has, and set after the last apply, is a change by others: of a field
that was applied, or of one that was not. A field that others *removed* belongs to no manager: that
can be seen by a dry run of the apply only, but for the label of the instance, which every object
has.
"""

import json
from collections.abc import Iterator

from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL
from temporal_plans.domain.packages.manifests import Manifest, entries, part
from temporal_plans.domain.packages.object_report import CHANGES_LIMIT, NOTE_LIMIT, FieldChange
from temporal_plans.domain.values.text import shortened

_CONTROLLERS = "kube-"
"""Kubernetes' own programs have names of this beginning: what they set is no change by people."""

_OF_CONTROLLERS = (
    "metadata.finalizers",
    "metadata.ownerReferences",
    "metadata.annotations[deployment.kubernetes.io/",
    "metadata.annotations[kubectl.kubernetes.io/last-applied",
    "status",
)
"""Beginnings of fields that controllers and clients set in everything."""

_STATUS = "status"
_Path = tuple[str, ...]


def changes_of_others(live: Manifest, manager: str) -> tuple[FieldChange, ...]:
    """Return the fields that others have set since ``manager`` applied the object last, cut at
    ``CHANGES_LIMIT``; none for an object that it never applied."""
    known = list(entries(part(live, "metadata"), "managedFields"))
    applied = [one for one in known if _applied_by(one, manager)]
    if not applied:
        return ()
    own = {path for one in applied for path in _leaves(part(one, "fieldsV1"))}
    since = max(str(one.get("time", "")) for one in applied)
    found = [
        _change(path, one)
        for one in known
        if _is_another(one, manager) and str(one.get("time", "")) >= since
        for path in _leaves(part(one, "fieldsV1"))
        if path not in own
    ]
    changes = [one for one in found if not one.field.startswith(_OF_CONTROLLERS)]
    if INSTANCE_LABEL not in part(live, "metadata", "labels"):
        changes.insert(0, FieldChange(field=f"metadata.labels[{INSTANCE_LABEL}]", by="removal"))
    return tuple(changes[:CHANGES_LIMIT])


def _applied_by(entry: Manifest, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply"


def _is_another(entry: Manifest, manager: str) -> bool:
    name = str(entry.get("manager", ""))
    mine = name == manager or name.startswith(_CONTROLLERS)
    return not mine and entry.get("subresource") != _STATUS


def _change(path: _Path, entry: Manifest) -> FieldChange:
    return FieldChange(
        field=shortened(_text(path), NOTE_LIMIT),
        by=shortened(str(entry.get("manager", "")), NOTE_LIMIT),
        at=shortened(str(entry.get("time", "")), 40),
    )


def _leaves(fields: Manifest, above: _Path = ()) -> Iterator[_Path]:
    """Yield the paths of the innermost fields of a set. ``.`` is the part above itself."""
    for key in fields:
        inner = part(fields, key)
        if key != "." and inner:
            yield from _leaves(inner, (*above, key))
        elif key != ".":
            yield (*above, key)
        elif len(fields) == 1:
            yield above


def _text(path: _Path) -> str:
    """Return a path as people write it: ``spec.containers[name=main].image``."""
    text = ""
    for key in path:
        kind, _, name = key.partition(":")
        if kind == "f" and not ({".", "/"} & set(name)):
            text += f".{name}" if text else name
        else:
            text += f"[{_selector(kind, name)}]"
    return text


def _selector(kind: str, name: str) -> str:
    """An element of a list: by its keys (``k``), its value (``v``) or its number (``i``)."""
    if kind != "k":
        return name
    try:
        keys = part(json.loads(name))
    except ValueError:
        return name
    return ",".join(f"{key}={value}" for key, value in keys.items())
