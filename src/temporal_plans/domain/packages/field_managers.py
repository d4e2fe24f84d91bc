"""Fields of objects that were applied on the client's side, by kubectl or by a controller.

The API server removes a field that is no longer sent when the sender owns it. Objects of a client
that computed its changes itself have their fields under that client's name, and would keep what a
template no longer has: their entries become the one of our manager, once.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import cast

from temporal_plans.domain.packages.manifests import Manifest, Object, entries, part

_LAST_APPLIED = (
    "f:kudo.dev/last-applied-configuration",
    "f:kubectl.kubernetes.io/last-applied-configuration",
)
"""The client that keeps what it applied last in one of these annotations applies."""


def migrated_managers(live: Manifest, manager: str) -> list[Object] | None:
    """Return ``metadata.managedFields`` with the fields of clients that applied as fields of the
    manager; None when there are no such clients."""
    known = list(entries(part(live, "metadata"), "managedFields"))
    moved = [one for one in known if _applied_by_client(one)]
    if not moved:
        return None
    own = [one for one in known if _is_of(one, manager)]
    kept = [dict(one) for one in known if one not in moved and one not in own]
    merged = _merged([*own, *moved])
    base = deepcopy(dict((own or moved)[0]))
    return [*kept, {**base, "manager": manager, "operation": "Apply", "fieldsV1": merged}]


def _applied_by_client(entry: Manifest) -> bool:
    if entry.get("operation") != "Update" or entry.get("subresource"):
        return False
    annotations = part(entry, "fieldsV1", "f:metadata", "f:annotations")
    return any(key in annotations for key in _LAST_APPLIED)


def _is_of(entry: Manifest, manager: str) -> bool:
    return (
        entry.get("manager") == manager
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
    )


def _merged(managers: Sequence[Manifest]) -> Object:
    """The union of sets of fields: nested mappings of keys."""
    fields: Object = {}
    for one in managers:
        _add(fields, part(one, "fieldsV1"))
    return fields


def _add(target: Object, added: Manifest) -> None:
    for key, inner in added.items():
        _add(cast(Object, target.setdefault(key, {})), part(inner))
