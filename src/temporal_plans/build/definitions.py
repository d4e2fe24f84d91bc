"""The type names that Temporal's decorators give to activities and workflows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Where the decorators of Temporal's SDK leave the definition. It has no public way to read it.
_ACTIVITY = "__temporal_activity_definition"
_WORKFLOW = "__temporal_workflow_definition"


@dataclass(frozen=True)
class TypeName:
    """A type by name. ``fault`` says why there is none; the name is then a stand-in for people."""

    name: str
    fault: str = ""


def activity_type(activity: str | Callable[..., Any]) -> TypeName:
    """The name of an activity, given by name or as a function with ``@activity.defn``."""
    return _type_name(activity, _ACTIVITY, "@activity.defn")


def workflow_type(workflow: str | Callable[..., Any]) -> TypeName:
    """The name of a workflow, given by name, as a class with ``@workflow.defn``, or its ``run``."""
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
        return TypeName(shown, f"{shown} is dynamic: it answers to many names, so say which")
    return TypeName(name)


def _is_of_base(given: object, definition: object) -> bool:
    """Classes inherit the attribute, but the SDK runs only the class that was decorated."""
    return isinstance(given, type) and getattr(definition, "cls", given) is not given
