"""From pydantic's errors to problems in plain words, with the paths that a file's writer knows."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.names import suggestion

Location = tuple[int | str, ...]

_WORDS: Mapping[str, str] = MappingProxyType(
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
        "greater_than": "must be more than {gt}",
        "greater_than_equal": "must be {ge} or more",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be {le} or less",
        "literal_error": "must be {expected}",
        "enum": "must be {expected}",
        "too_short": "must not be empty",
        "string_too_short": "must not be empty",
        "string_too_long": "must have at most {max_length} characters",
        "string_pattern_mismatch": "must match {pattern}",
        "union_tag_invalid": "must be one of {expected_tags}",
        "union_tag_not_found": "must say its kind",
        "wrong": "{message}",
        "value_error": "{error}",
    }
)


def complaints(
    error: ValidationError,
    model: type[BaseModel],
    locate: Callable[[Location], str] | None = None,
    extra_keys: Mapping[type[BaseModel], Sequence[str]] = MappingProxyType({}),
) -> list[Problem]:
    """One problem for each error. ``locate`` turns pydantic's location into our path;
    ``extra_keys`` are keys beyond a model's fields that its writer may use.
    """
    locate = locate or dotted
    return [
        _problem(details, model, locate, extra_keys) for details in error.errors(include_url=False)
    ]


def dotted(location: Location) -> str:
    """``pods.hello.count``; pydantic's mark for "the key itself" is left out."""
    return ".".join(str(part) for part in location if part != "[key]")


def _problem(
    details: ErrorDetails,
    model: type[BaseModel],
    locate: Callable[[Location], str],
    extra_keys: Mapping[type[BaseModel], Sequence[str]],
) -> Problem:
    kind, location = details["type"], details["loc"]
    context = {key: _plain(entry) for key, entry in details.get("ctx", {}).items()}
    words = _WORDS.get(kind)
    value = details["input"]
    fix = str(context.get("fix", ""))
    if kind == "extra_forbidden":
        owner = model_at(model, location[:-1])
        own = [_key(name, owner) for name in owner.model_fields] if owner else []
        extra = extra_keys.get(owner, ()) if owner else ()
        fix = suggestion(str(location[-1]), [*own, *extra])
    message = words.format_map(context) if words else details["msg"]
    if kind in ("missing", "union_tag_not_found") or (value is None and kind != "extra_forbidden"):
        message = "is missing" if kind != "union_tag_not_found" else message
        value = None
    return Problem(path=locate(location), message=message, value=value, fix=fix)


def _plain(bound: object) -> object:
    """``0.0`` as people write it."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _key(name: str, owner: type[BaseModel]) -> str:
    return owner.model_fields[name].alias or name


def model_at(annotation: Any, location: Location) -> type[BaseModel] | None:
    """The model that describes the mapping at a location, or None when there is none."""
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
        if location[0] in (name, info.alias):
            return model_at(info.annotation, location[1:])
    return None


def _in_union(options: Sequence[Any], location: Location) -> type[BaseModel] | None:
    """The option that pydantic took: its tag stands in the location when the union has tags."""
    for option in options:
        fields = cast(dict[str, Any], getattr(option, "model_fields", {}))
        if "kind" in fields and location and fields["kind"].default == location[0]:
            return model_at(option, location[1:])
    found = (model_at(option, location) for option in options)
    return next((model for model in found if model is not None), None)
