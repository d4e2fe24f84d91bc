"""Configurations as lists, documents and differences."""

from typing import Any

import yaml
from rich.text import Text

from temporal_plans.cli.terminal.change_lines import field_lines, plan_lines, settings_lines
from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.listing import moment
from temporal_plans.cli.terminal.output import printable
from temporal_plans.domain.owners.configurations import OwnedConfiguration
from temporal_plans.domain.services.change import FieldChange, PodChange
from temporal_plans.domain.services.comparison import pod_fields, pod_of
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.plan_comparison import plan_changes, settings_changes
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.model import in_file_form
from temporal_plans.messages.packages import PackageConfigurations
from temporal_plans.messages.services import ChangeView, Configurations

AnyConfigurations = Configurations | PackageConfigurations


def configuration_lines(found: AnyConfigurations) -> list[Text]:
    numbers = {configuration.id: configuration.number for configuration in found.configurations}
    rows = [
        (
            "*" if configuration.id == found.target else "",
            str(configuration.number),
            moment(configuration.at),
            configuration.by,
            _why(configuration.reason, numbers.get(configuration.source, configuration.source)),
            configuration.id,
        )
        for configuration in found.configurations
    ]
    return columns(("", "NUMBER", "SINCE", "BY", "REASON", "ID"), rows)


def _why(reason: str, source: int | str) -> str:
    back = f"back to {source}" if source else ""
    return ": ".join(part for part in (back, reason) if part)


def configurations_json(found: AnyConfigurations) -> list[dict[str, Any]]:
    """Return the configurations without their content, which ``config show`` prints."""
    return [
        {
            "number": configuration.number,
            "id": configuration.id,
            "at": configuration.at,
            "by": configuration.by,
            "reason": configuration.reason,
            "source": configuration.source or None,
            "target": configuration.id == found.target,
        }
        for configuration in found.configurations
    ]


def specification(spec: ServiceSpec) -> dict[str, Any]:
    """Return a service with the keys of its file, without defaults."""
    return in_file_form(spec)


def yaml_text(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


def difference(before: Configuration, after: Configuration) -> ChangeView:
    """Return the pod types, plans and settings that differ, by field. A pod type of one
    configuration only is one change."""
    old, new = before.spec, after.spec
    types = dict.fromkeys(pod.type for spec in (old, new) for pod in spec.pods)
    pods = (PodChange(pod=name, fields=_fields(old, new, name)) for name in types)
    return ChangeView(
        pods=tuple(change for change in pods if change.fields),
        plans=plan_changes(old, before.plans, new, after.plans),
        settings=settings_changes(old, new),
    )


def _fields(before: ServiceSpec, after: ServiceSpec, pod_type: str) -> tuple[FieldChange, ...]:
    old, new = pod_of(before, pod_type), pod_of(after, pod_type)
    if old is not None and new is not None:
        return pod_fields(old, new)
    old_text, new_text = (f"{pod.count} pods" if pod else None for pod in (old, new))
    return (FieldChange(path="count", before=old_text, after=new_text, restarts=False),)


def compared_lines(
    before: OwnedConfiguration, after: OwnedConfiguration, target: str
) -> list[Text]:
    """Return a line that names the two configurations, and the one in force."""
    old, new = (
        f"{one.number} (in force)" if one.id == target else str(one.number)
        for one in (before, after)
    )
    if before.id == after.id:
        return [Text(f"Configuration {old} was compared with itself; name two: config diff A B.")]
    return [Text(f"Configuration {old} -> {new}:")]


def difference_lines(change: ChangeView) -> list[Text]:
    lines: list[Text] = []
    for pod in change.pods:
        lines.append(Text(f"{printable(pod.pod)}:"))
        lines += field_lines(pod.fields)
    lines += [*plan_lines(change.plans), *settings_lines(change.settings)]
    return lines or [Text("They do not differ.")]
