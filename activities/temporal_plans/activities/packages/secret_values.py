"""The values of a package's secret parameters, and what must not stand in a reason."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.activities.mechanics.secrets import SecretLookup, SecretProviderFailed
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.manifests import Manifest, group_kind, part

_LENGTH_MINIMUM = 4
"""Shorter values in Secrets that templates make are not hidden: ``true`` is one, ``1`` is none."""

_TELLING_LENGTH = 8
"""Shorter values, such as ``admin``, may be in names by chance."""


async def secret_values(references: Mapping[str, str], lookup: SecretLookup) -> dict[str, str]:
    """Return the values of secret parameters by name. Raises TaskProblem, without any value."""
    return {name: await _value(name, reference, lookup) for name, reference in references.items()}


async def _value(name: str, reference: str, lookup: SecretLookup) -> str:
    try:
        value = await lookup.find(reference)
    except SecretProviderFailed as error:
        raise TaskProblem(f"parameter {name}: {error}", passing=True) from None
    if value is None:
        raise TaskProblem(
            f"parameter {name}: secret {reference!r} was not found; "
            f"the providers of this cluster's worker: {lookup.names}"
        )
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise TaskProblem(f"parameter {name}: secret {reference!r} is not UTF-8") from None


class HiddenValues:
    """What must not stand in a reason: values of secret parameters, and those in Secrets that
    templates make, each also in the form that Secrets have."""

    def __init__(self) -> None:
        self._values: set[bytes] = set()
        self._telling: set[str] = set()

    def add_values(self, values: Iterable[str]) -> None:
        """Add values of secret parameters."""
        for value in values:
            if len(value) >= _TELLING_LENGTH:
                self._telling.add(value)
            self._values |= {value.encode(), base64.b64encode(value.encode())}

    def add_objects(self, manifests: Iterable[Manifest]) -> None:
        """Add the values in those of the objects that are Secrets."""
        for manifest in manifests:
            if group_kind(manifest) == ("", "Secret"):
                self._add_secret(manifest)

    def _add_secret(self, manifest: Manifest) -> None:
        texts = _scalars(part(manifest, "stringData"))
        self.add_values(text for text in texts if len(text) >= _LENGTH_MINIMUM)
        for text in _scalars(part(manifest, "data")):
            if len(text) >= _LENGTH_MINIMUM:
                self._values |= {text.encode(), _decoded(text)}

    def tells(self, name: str) -> bool:
        """Return whether a name has a value in it, which is not one that a name may well have."""
        return any(value in name for value in self._telling)

    def hide(self, text: str) -> str:
        """Return a text without any of the values."""
        return Redactor(self._values).text(text)


def _scalars(value: object) -> Iterator[str]:
    """Yield the texts in a value, of any depth: it may be no mapping of texts, and is refused."""
    if isinstance(value, Mapping):
        value = list(cast(Mapping[str, object], value).values())
    if isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _scalars(one)
    else:
        yield str(value)


def _decoded(text: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return b""
    return found if len(found) >= _LENGTH_MINIMUM else b""
