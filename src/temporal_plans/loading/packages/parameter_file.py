"""Files of parameters: a YAML mapping of values by name."""

from collections.abc import Mapping
from typing import cast

from temporal_plans.domain.packages.printing import printed
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.structures import encode
from temporal_plans.loading.text.document import read_yaml


def given_texts(text: str, *, source: str) -> dict[str, str]:
    """Return the texts of parameters by name of a file that a person wrote; see
    ``parameter_texts``. Raises SpecError for nulls, too: they may be meant as an empty text, or as
    no value."""
    value = _mapping(text, source)
    fix = 'write "" for an empty text; -p NAME- unsets a value'
    nulls = [
        Reason(field=str(name), problem="is null", fix=fix)
        for name, one in value.items()
        if one is None
    ]
    if nulls:
        raise SpecError(nulls, source=source)
    return parameter_texts(text, source=source)


def parameter_texts(text: str, *, source: str) -> dict[str, str]:
    """Return the texts of parameters by name: a list or a mapping is YAML, null is an empty text.
    An empty file has none. Raises SpecError when it is no mapping of names."""
    return {str(name): _text(one) for name, one in _mapping(text, source).items()}


def _mapping(text: str, source: str) -> Mapping[object, object]:
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    value = read_yaml(text, scalars="yaml-1.1", source=source).value
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problem = Reason(field="", problem="is no mapping", fix="write NAME: VALUE lines")
        raise SpecError([problem], source=source)
    return cast(Mapping[object, object], value)


def _text(value: object) -> str:
    if value is None:
        return ""
    return printed(value) if isinstance(value, str | int | float) else encode(value)
