"""The values of parameters behind a change, the faults in them, and how they differ."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from temporal_plans.domain.packages.changes import (
    SECRET,
    TEXT_LIMIT,
    ChangeRequest,
    ParameterChange,
    ParameterEffect,
)
from temporal_plans.domain.packages.installation import GIVEN_LIMIT, Installation, PackageDefinition
from temporal_plans.domain.packages.parameters import Decode, Parameter, value_faults
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened


class Values(NamedTuple):
    """Values that are given, by the name of their parameter: texts, and references to secret
    ones."""

    given: Mapping[str, str]
    secrets: Mapping[str, str]

    def has(self, name: str) -> bool:
        return name in self.given or name in self.secrets


def values_of(installed: Installation | None) -> Values:
    """Return the values of what is installed; none where nothing is."""
    return Values(installed.given, installed.secrets) if installed else Values({}, {})


def values_after(
    before: Installation | None, request: ChangeRequest, package: PackageDefinition
) -> Values:
    """Return the values behind a change, of parameters that the package has.

    At the installation the defaults of immutable parameters are copied, so that the default of a
    later version does not change them.
    """
    known = package.by_name
    old = values_of(None if request.exact else before)
    given = {name: text for name, text in old.given.items() if name in known}
    secrets = {name: reference for name, reference in old.secrets.items() if name in known}
    for name, text in request.parameters.items():
        secrets.pop(name, None)
        given.pop(name, None)
        if text is not None and name in known:
            given[name] = text
    for name, reference in request.secrets.items():
        given.pop(name, None)
        if name in known:
            secrets[name] = reference
    if before is None:
        for one in package.parameters:
            if one.immutable and one.default is not None and one.name not in secrets:
                given.setdefault(one.name, one.default)
    return Values(given, secrets)


def request_faults(
    before: Installation | None, request: ChangeRequest, package: PackageDefinition
) -> Iterator[Reason]:
    """Yield a reason for each value of a request that is not to be given, or not in this way."""
    old, known = values_of(before), package.by_name
    asked = {**request.parameters, **request.secrets}
    for name, text in request.parameters.items():
        if name in request.secrets:
            yield _reason(name, "is given as a text and as a secret", fix="give one of them")
        elif text is not None and name in known and known[name].secret:
            fix = f"give it in a file: --secret-parameter {name}=FILE"
            yield _reason(name, "is secret, so its value can't be given as a text", fix=fix)
    for name, text in asked.items():
        unset = name in request.parameters and text is None
        if name not in known and not (unset and old.has(name)):
            shown = None if unset or name in request.secrets else text
            fix = suggestion(name, known) or "the package has no parameters"
            yield _reason(name, "is not a parameter of the package", value=shown, fix=fix)


def faults_of_values(
    before: Installation | None, after: Values, package: PackageDefinition, decode: Decode
) -> Iterator[Reason]:
    """Yield a reason for each value that the package does not take, defaults included, and for each
    immutable one that would change."""
    if (size := sum(len(name) + len(text) for name, text in after.given.items())) > GIVEN_LIMIT:
        problem = f"the values have more than {GIVEN_LIMIT} characters together"
        yield Reason(field="parameters", problem=problem, value=size)
    readable = [one for one in package.parameters if one.name not in after.secrets]
    secret = {one.name for one in package.parameters if one.secret}
    for fault in value_faults(readable, after.given, decode):
        value = None if fault.field in secret else fault.value
        yield fault.but(field=f"parameters.{fault.field}", value=value)
    if before is not None:
        for one in package.parameters:
            if one.immutable and (changed := _immutable_fault(one, before, after)):
                yield changed


def _immutable_fault(one: Parameter, before: Installation, after: Values) -> Reason | None:
    """Return why an immutable parameter of the next version can't have its value then."""
    old = values_of(before)
    former = before.package.by_name.get(one.name)
    again = "or install the package again under another name"
    if former is None or not former.immutable:
        if after.has(one.name):
            return None
        default = f"; the default is {_text(one, one.default)}" if one.default is not None else ""
        changed = "is immutable in the new version, and has no value"
        return _reason(one.name, changed, fix=f"give it with -p {one.name}=VALUE{default}")
    if old.has(one.name) and not after.has(one.name):
        return _reason(one.name, "is immutable, and can't be unset", fix=f"keep it, {again}")
    if _in_effect(former, old) == _in_effect(one, after):
        return None
    now = _shown(former, old)
    return _reason(
        one.name,
        f"is immutable, and would change from {now!r}",
        value=_shown(one, after),
        fix=f"keep {now!r}, {again}",
    )


def parameter_changes(
    before: Installation | None, after: Values, package: PackageDefinition
) -> Iterator[ParameterChange]:
    """Yield the parameters that differ, in the order of the package; dropped ones last."""
    old = values_of(before)
    former = before.package.by_name if before else {}
    for one in package.parameters:
        was = former.get(one.name)
        effect = _effect(one, was, old, after)
        if effect is not None:
            yield ParameterChange(
                name=one.name,
                effect=effect,
                before=None if was is None else _shown(was, old),
                after=_shown(one, after),
                trigger=one.trigger,
            )
    for name in sorted({*old.given, *old.secrets} - package.by_name.keys()):
        was = former.get(name)
        text = None if was is None else _shown(was, old)
        yield ParameterChange(name=name, effect=ParameterEffect.DROP, before=text)


def _effect(
    one: Parameter, was: Parameter | None, old: Values, new: Values
) -> ParameterEffect | None:
    """Return how the value of a parameter differs, as it is given: its default given as a value is
    a change."""
    if not old.has(one.name) and not new.has(one.name):
        other = was is not None and was.default != one.default
        return ParameterEffect.DEFAULT if other else None
    if not old.has(one.name):
        return ParameterEffect.ADD
    if not new.has(one.name):
        return ParameterEffect.REMOVE
    return None if _value(one.name, old) == _value(one.name, new) else ParameterEffect.CHANGE


def _value(name: str, values: Values) -> tuple[str | None, str | None]:
    return values.given.get(name), values.secrets.get(name)


def _in_effect(one: Parameter, values: Values) -> tuple[str | None, str | None]:
    reference = values.secrets.get(one.name)
    return (None, reference) if reference is not None else (one.raw(values.given), None)


def _shown(one: Parameter, values: Values) -> str | None:
    """Return the text in effect as people may see it; None without a value and a default."""
    if one.name in values.secrets or (one.secret and one.name in values.given):
        return SECRET
    if one.name not in values.given and one.default is None:
        return None
    return _text(one, one.raw(values.given))


def _text(one: Parameter, text: str | None) -> str:
    return SECRET if one.secret else shortened(text or "", TEXT_LIMIT)


def _reason(name: str, problem: str, *, value: object = None, fix: str = "") -> Reason:
    return Reason(field=f"parameters.{name}", problem=problem, value=value, fix=fix)
