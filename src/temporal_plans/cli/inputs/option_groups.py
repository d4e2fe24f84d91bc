"""Options that several commands take together: a parameter of a command whose type is a dataclass
stands for an option of each field."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from temporal_plans.cli.inputs.flags import ConnectionFlags, present


def ungrouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with an option for each field of its groups, which fill them."""
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if _is_group(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            parameters += _options(parameter.annotation)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    if not groups:
        return command

    def wrapped(**given: Any) -> None:
        filled = {
            name: group(**{field.name: given.pop(field.name) for field in _fields(group)})
            for name, group in groups.items()
        }
        command(**given, **filled)

    present(wrapped, command, parameters)
    return wrapped


def _is_group(annotation: object) -> bool:
    is_class = isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
    return is_class and annotation is not ConnectionFlags


def _options(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in _fields(group)
    ]


def _fields(group: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(group)
