"""Values of parameters in a YAML mapping, as the parameter files of nested packages give them."""

from collections.abc import Mapping
from typing import cast

from temporal_plans.domain.packages.printing import printed
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.structures import encode
from temporal_plans.loading.text.document import read_yaml


def parameter_texts(text: str, source: str) -> dict[str, str]:
    """Return the texts of parameters by name: lists and mappings as YAML, scalars as they are
    printed. One that is null is not given. Raises SpecError, without any value: it may be secret.
    """
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    try:
        value = read_yaml(text, scalars="yaml-1.1", source=source).value
    except SpecError as error:
        reasons = [reason.but(value=None) for reason in error.reasons]
        raise SpecError(reasons, source=source) from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        reason = Reason(problem="is no mapping", fix="write NAME: VALUE lines")
        raise SpecError([reason], source=source)
    entries = cast(Mapping[str, object], value)
    return {name: _text(entry) for name, entry in entries.items() if entry is not None}


def _text(value: object) -> str:
    return encode(value) if isinstance(value, list | Mapping) else printed(value)
