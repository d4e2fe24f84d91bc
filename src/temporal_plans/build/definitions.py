"""The type names that Temporal's decorators give to activities and workflows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Attributes that the decorators of Temporal's SDK set. There is no public way to read a definition.
_ACTIVITY = "__temporal_activity_definition"
_WORKFLOW = "__temporal_workflow_definition"


@dataclass(frozen=True)
class TypeName:
    """The name of a type. ``fault``: why there is none; the name is then only for messages."""

    name: str
    fault: str = ""


def activity_type(activity: str | Callable[..., Any]) -> TypeName:
    """Return the name of an activity, given by name or as a function with ``@activity.defn``."""
    return _type_name(activity, _ACTIVITY, "@activity.defn")


def workflow_type(workflow: str | Callable[..., Any]) -> TypeName:
    """Return the name of a workflow, given by name, as a class with ``@workflow.defn``, or as its
    ``run`` method."""
    return _type_name(workflow, _WORKFLOW, "@workflow.defn")


def _type_name(given: str | Callable[..., Any], attribute: str, decorator: str) -> TypeName:
    if isinstance(given, str):
        return TypeName(given)
    shown = getattr(given, "__qualname__", repr(given)).rpartition(".")[2]
    definition = getattr(given, attribute, None)
    if definition is None or _is_of_base(given, definition):
        return TypeName(shown, f"{shown} has no {decorator}")
    name: str | None = definition.name
    if name is None:
        return TypeName(shown, f"{shown} is dynamic, so it has no name")
    return TypeName(name)


def _is_of_base(given: object, definition: object) -> bool:
    """Return whether the attribute is inherited: the SDK runs only the class that is decorated."""
    return isinstance(given, type) and getattr(definition, "cls", given) is not given
