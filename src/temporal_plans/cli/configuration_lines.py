"""Configurations as lists, documents and differences."""

from collections.abc import Sequence
from typing import Any

import yaml
from rich.text import Text

from temporal_plans.cli.change_lines import field_lines
from temporal_plans.cli.columns import columns
from temporal_plans.cli.listing import moment
from temporal_plans.cli.output import printable
from temporal_plans.domain.change import FieldChange, PodChange
from temporal_plans.domain.comparison import pod_fields, pod_of
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.messages.service import Configurations


def configuration_lines(found: Configurations) -> list[Text]:
    numbers = {one.id: one.number for one in found.configurations}
    rows = [
        (
            "*" if one.id == found.target else "",
            str(one.number),
            moment(one.at),
            one.by,
            _why(one.reason, numbers.get(one.source, one.source)),
            one.id,
        )
        for one in found.configurations
    ]
    return columns(("", "NUMBER", "SINCE", "BY", "REASON", "ID"), rows)


def _why(reason: str, source: int | str) -> str:
    back = f"back to {source}" if source else ""
    return ": ".join(part for part in (back, reason) if part)


def configurations_json(found: Configurations) -> list[dict[str, Any]]:
    """Without what they say: ``config show`` has that."""
    return [
        {
            "number": one.number,
            "id": one.id,
            "at": one.at.isoformat() if one.at else None,
            "by": one.by,
            "reason": one.reason,
            "source": one.source or None,
            "target": one.id == found.target,
        }
        for one in found.configurations
    ]


def specification(spec: ServiceSpec) -> dict[str, Any]:
    """What a service is, with the keys of its file and without defaults."""
    return spec.model_dump(mode="json", by_alias=True)


def yaml_text(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def difference(before: ServiceSpec, after: ServiceSpec) -> list[PodChange]:
    """Pod types that differ, by field; those that only one has as one change."""
    types = dict.fromkeys(pod.type for spec in (before, after) for pod in spec.pods)
    changes = [PodChange(pod=name, fields=_fields(before, after, name)) for name in types]
    return [change for change in changes if change.fields]


def _fields(before: ServiceSpec, after: ServiceSpec, pod_type: str) -> tuple[FieldChange, ...]:
    old, new = pod_of(before, pod_type), pod_of(after, pod_type)
    if old is not None and new is not None:
        return pod_fields(old, new)
    old_text, new_text = (f"{pod.count} pods" if pod else None for pod in (old, new))
    return (FieldChange(path="count", before=old_text, after=new_text, restarts=False),)


def difference_lines(changes: Sequence[PodChange]) -> list[Text]:
    lines: list[Text] = []
    for change in changes:
        lines.append(Text(f"{printable(change.pod)}:"))
        lines += field_lines(change.fields)
    return lines or [Text("Their pods do not differ.")]
