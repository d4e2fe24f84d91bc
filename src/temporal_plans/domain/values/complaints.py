"""Converts pydantic's errors into problems with the paths and terms of our files and messages."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from temporal_plans.domain.values.model import file_key
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason

Location = tuple[int | str, ...]

_TIME = "must be a time such as 2026-01-05T08:30:00Z"
_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "missing": "is missing",
        "extra_forbidden": "unknown key",
        "string_type": "must be text",
        "int_type": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_from_float": "must be a whole number",
        "int_parsing_size": "is too large",
        "float_type": "must be a number",
        "float_parsing": "must be a number",
        "finite_number": "must be a finite number",
        "bool_type": "must be true or false",
        "bool_parsing": "must be true or false",
        "dict_type": "must be a mapping of keys to values",
        "model_type": "must be a mapping of keys to values",
        "model_attributes_type": "must be a mapping of keys to values",
        "mapping_type": "must be a mapping of keys to values",
        "tuple_type": "must be a list",
        "list_type": "must be a list",
        "time_delta_type": "must be a duration such as 30s, 5m or 1h30m",
        "time_delta_parsing": "must be a duration such as 30s, 5m or 1h30m",
        "datetime_type": _TIME,
        "datetime_parsing": _TIME,
        "datetime_from_date_parsing": _TIME,
        "datetime_object_invalid": _TIME,
        "timezone_aware": "must have a time zone, such as 2026-01-05T08:30:00Z",
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be {ge} or more",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be {le} or less",
        "literal_error": "must be {expected}",
        "enum": "must be {expected}",
        "too_short": "must not be empty",
        "too_long": "must have at most {max_length} entries",
        "string_too_short": "must not be empty",
        "string_too_long": "must have at most {max_length} characters",
        "string_pattern_mismatch": "must match {pattern}",
        "union_tag_invalid": "must be one of {expected_tags}",
        "union_tag_not_found": "must have a kind",
        "json_invalid": "is not JSON: {error}",
        "wrong": "{message}",
        "value_error": "{error}",
    }
)


def complaints(
    error: ValidationError,
    model: type[BaseModel],
    locate: Callable[[Location], str] | None = None,
    extra_keys: Mapping[type[BaseModel], Sequence[str]] = MappingProxyType({}),
) -> list[Reason]:
    """Return a problem for each error. ``locate`` converts pydantic's location into a path;
    ``extra_keys`` are keys that are allowed in addition to a model's fields.
    """
    locate = locate or dotted
    return [
        _problem(details, model, locate, extra_keys) for details in error.errors(include_url=False)
    ]


def unknown_keys(found: Sequence[Reason], error: ValidationError) -> list[Reason]:
    """Return the problems with keys that a model does not have, of those that ``complaints`` found
    for the error."""
    faults = error.errors(include_url=False)
    return [
        problem
        for problem, fault in zip(found, faults, strict=True)
        if fault["type"] == "extra_forbidden"
    ]


def dotted(location: Location) -> str:
    """Return a location as ``pods.hello.count``, without pydantic's mark for a key (``[key]``)."""
    return ".".join(str(part) for part in location if part != "[key]")


def _problem(
    details: ErrorDetails,
    model: type[BaseModel],
    locate: Callable[[Location], str],
    extra_keys: Mapping[type[BaseModel], Sequence[str]],
) -> Reason:
    kind, location = details["type"], details["loc"]
    context = {key: _plain(entry) for key, entry in details.get("ctx", {}).items()}
    text = _TEXTS.get(kind)
    value = details["input"]
    fix = str(context.get("fix", ""))
    if kind == "extra_forbidden":
        owner = model_at(model, location[:-1])
        own = [file_key(owner, name) for name in owner.model_fields] if owner else []
        extra = extra_keys.get(owner, ()) if owner else ()
        key = str(location[-1])
        fix = _known_fix(owner, key) or suggestion(key, [*own, *extra])
    message = text.format_map(context) if text else details["msg"]
    if kind in ("missing", "union_tag_not_found") or (value is None and kind != "extra_forbidden"):
        message = "is missing" if kind != "union_tag_not_found" else message
        value = None
    return Reason(field=locate(location), problem=message, value=value, fix=fix)


def _known_fix(owner: type[BaseModel] | None, key: str) -> str:
    fixes: Mapping[str, str] = getattr(owner, "UNKNOWN_KEYS", {})
    return fixes.get(key, "")


def _plain(bound: object) -> object:
    """Return a whole float as an int: ``0`` for ``0.0``."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def model_at(annotation: Any, location: Location) -> type[BaseModel] | None:
    """Return the model of the mapping at a location, or None when there is none."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return model_at(get_args(annotation)[0], location)
    if origin in (Union, UnionType):
        return _in_union(get_args(annotation), location)
    if origin in (dict, Mapping):
        return model_at(get_args(annotation)[1], location[1:]) if location else None
    if origin in (tuple, list):
        return model_at(get_args(annotation)[0], location[1:]) if location else None
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return None
    if not location:
        return annotation
    for name, info in annotation.model_fields.items():
        if location[0] in (name, file_key(annotation, name)):
            return model_at(info.annotation, location[1:])
    return None


def _in_union(options: Sequence[Any], location: Location) -> type[BaseModel] | None:
    """Return the model of the option that pydantic chose. The location of a tagged union has its
    tag."""
    for option in options:
        fields = cast(dict[str, Any], getattr(option, "model_fields", {}))
        if "kind" in fields and location and fields["kind"].default == location[0]:
            return model_at(option, location[1:])
    found = (model_at(option, location) for option in options)
    return next((model for model in found if model is not None), None)
