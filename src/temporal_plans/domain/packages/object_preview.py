"""What a plan would change of the objects in a cluster, in bounded texts."""

import json
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, cast

from pydantic import Field

from temporal_plans.domain.packages.enhancement import PHASE_KEY, PLAN_KEY, RUN_KEY, STEP_KEY
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import Manifest, group_kind, part
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shortened

PATH_LIMIT, VALUE_LIMIT, FIELDS_LIMIT = 300, 200, 30
"""Characters of a field's path and of a value; fields of one object."""

PROBLEM_LIMIT = 500

MASKED = "(hidden)"
"""In the place of a value that must not be shown."""

Show = Callable[[str], str]
"""Returns a text without the values of secrets."""

_Path = tuple[str, ...]
_METADATA = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
_IGNORED = (
    ("status",),
    *(("metadata", key) for key in _METADATA),
    *(("metadata", "annotations", key) for key in (PLAN_KEY, PHASE_KEY, STEP_KEY, RUN_KEY)),
)
"""What the server counts, and what names the run that applied an object last."""

_OPEN_IN_SECRETS = (("type",), ("immutable",), ("metadata", "labels"))
"""What of a Secret may be read; annotations of other clients have copies of the data."""


class PreviewAction(StrEnum):
    """What would become of an object. ``LEFT``: no template of the plan renders it any more, and it
    stays. ``REFUSED``: the cluster would refuse it as it is rendered now."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    LEFT = "left"
    REFUSED = "refused"


class FieldDifference(CompactValue):
    """A field with its values as JSON, cut when long; None where the field is absent."""

    field: str = Field(max_length=PATH_LIMIT)
    before: str | None = Field(default=None, max_length=VALUE_LIMIT)
    after: str | None = Field(default=None, max_length=VALUE_LIMIT)


class ObjectPreview(CompactValue):
    """One object. ``more`` is the number of fields that differ and are not listed; ``problem`` is
    why it is refused, or what else there is to know."""

    ref: ObjectRef
    action: PreviewAction
    fields: tuple[FieldDifference, ...] = Field(default=(), max_length=FIELDS_LIMIT)
    more: int = 0
    problem: str = Field(default="", max_length=PROBLEM_LIMIT)


def compared(ref: ObjectRef, live: Manifest, planned: Manifest, show: Show) -> ObjectPreview:
    """Return what the server would make of a live object: ``planned`` is its answer to a dry run.

    Values of Secrets are masked, and so is the value that a field has where its next one holds the
    value of a secret: it may be an earlier value of the same secret.
    """
    found = list(_differences(live, planned))
    secret = group_kind(live) == ("", "Secret")
    fields = [_difference(*one, show, secret) for one in found[:FIELDS_LIMIT]]
    action = PreviewAction.CHANGED if found else PreviewAction.UNCHANGED
    return ObjectPreview(
        ref=ref, action=action, fields=tuple(fields), more=len(found) - len(fields)
    )


def _differences(before: Any, after: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any, Any]]:
    """Yield the innermost fields that differ, with both values."""
    if before == after or path in _IGNORED:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        one, two = cast(dict[str, Any], before), cast(dict[str, Any], after)
    elif (pair := _by_name(before, after)) is not None:
        one, two = pair
    else:
        yield path, before, after
        return
    for key in dict.fromkeys([*one, *two]):
        yield from _differences(one.get(key), two.get(key), (*path, key))


def _by_name(before: Any, after: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return two lists as mappings by the names of their elements, such as containers; None where
    they have none."""
    lists = [_named(before), _named(after)]
    one, two = lists
    return (one, two) if one is not None and two is not None else None


def _named(value: object) -> dict[str, Any] | None:
    if not isinstance(value, list):
        return None
    elements = cast(list[object], value)
    names = [part(one).get("name") for one in elements]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return {f"name={name}": one for name, one in zip(names, elements, strict=True)}


def _difference(path: _Path, before: Any, after: Any, show: Show, secret: bool) -> FieldDifference:
    closed = secret and not any(path[: len(one)] == one for one in _OPEN_IN_SECRETS)
    texts = [None if value is None else _text(_shown(value, show)) for value in (before, after)]
    telling = after is not None and texts[1] != _text(after)
    old, new = [MASKED if text is not None and closed else text for text in texts]
    if telling and old is not None:
        old = MASKED
    return FieldDifference(field=shortened(show(_path(path)), PATH_LIMIT), before=old, after=new)


def _shown(value: Any, show: Show) -> Any:
    """Return a value without those of secrets, which may be parts of its texts, keys or numbers."""
    if isinstance(value, dict):
        entries = cast(dict[str, Any], value)
        return {show(key): _shown(one, show) for key, one in entries.items()}
    if isinstance(value, list):
        return [_shown(one, show) for one in cast(list[object], value)]
    if isinstance(value, str):
        return show(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        return value if show(text) == text else MASKED
    return value


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return shortened(text, VALUE_LIMIT)


def _path(path: Sequence[str]) -> str:
    """``spec.template.spec.containers[name=main].image``."""
    text = ""
    for key in path:
        if {".", "/", "="} & set(key):
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text
