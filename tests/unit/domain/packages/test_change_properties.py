"""Properties of changes: of any requests, one after the other."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.packages.changes import ChangeRequest, ParameterEffect
from temporal_plans.domain.packages.installation import Installation, PackageDefinition
from temporal_plans.domain.packages.parameters import value_faults
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.loading.packages.structures import decode
from unit.domain.packages.installations import definition, installed, plans

NAMES = ("A", "B", "C")


def package(
    content: str, chosen: set[str], parameters: dict[str, dict[str, Any]], version: str
) -> PackageDefinition:
    made: dict[str, Any] = dict(parameters)
    return definition(content, plans=plans(*sorted(chosen)), version=version, **made)


def first_of(package: PackageDefinition, values: dict[str, str]) -> Installation:
    given = {name: text for name, text in values.items() if name in package.by_name}
    return installed(package, given)


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "default": st.sampled_from(["1", "2", ""]),
    "required": st.booleans(),
    "immutable": st.booleans(),
    "secret": st.booleans(),
    "trigger": st.sampled_from(["", "deploy", "backup", "none", "cleanup"]),
    "type": st.sampled_from(["", "integer"]),
}
packages = st.builds(
    package,
    st.sampled_from("abc"),
    st.sets(st.sampled_from(["deploy", "update", "upgrade", "backup", "cleanup"])),
    st.dictionaries(st.sampled_from(NAMES), st.fixed_dictionaries({}, optional=OPTIONS)),
    st.sampled_from(["1.0.0", "2.0.0"]),
)
texts = st.dictionaries(st.sampled_from([*NAMES, "X"]), st.sampled_from(["1", "2", "x", "", None]))
secrets = st.dictionaries(st.sampled_from([*NAMES, "X"]), st.sampled_from(["r1", "r2"]), max_size=1)
requests = st.builds(
    ChangeRequest,
    package=st.one_of(st.none(), packages),
    parameters=texts,
    secrets=secrets,
    exact=st.booleans(),
    allow_downgrade=st.booleans(),
)
before = st.builds(
    first_of, packages, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["1", "2"]))
)


@given(before, requests)
def test_what_is_accepted_is_sound(first: Installation, request: ChangeRequest) -> None:
    found = resolve(first, request, decode)
    if isinstance(found, Refusal):
        assert found.reasons
        assert len(str(found)) < 5000
        return
    after, change = found
    known = after.package.by_name
    assert not after.given.keys() & after.secrets.keys()
    assert {*after.given, *after.secrets} <= known.keys()
    readable = [one for one in after.package.parameters if one.name not in after.secrets]
    assert not list(value_faults(readable, after.given, decode))
    assert not change.plan or change.plan in after.package.plans
    assert change.plan != "cleanup"
    assert change.why
    asked = [one for one in change.parameters if one.is_asked_for]
    if after.package.content == first.package.content:
        assert bool(change.plan) is bool(asked)
    else:
        assert change.plan in ("upgrade", "update", "deploy")
    for one in change.parameters:
        if one.effect is ParameterEffect.DROP:
            assert one.name not in known


@given(before, requests)
def test_the_same_request_again_changes_nothing(
    first: Installation, request: ChangeRequest
) -> None:
    found = resolve(first, request, decode)
    if isinstance(found, Resolved):
        again = resolve(found.installation, request.but(allow_downgrade=True), decode)
        if isinstance(again, Resolved):
            assert again.installation == found.installation
            assert (again.change.plan, again.change.parameters) == ("", ())
        else:  # unsetting what the new version lacks is refused the second time
            assert all("is not a parameter" in str(reason) for reason in again.reasons)


@given(before, requests)
def test_a_change_can_be_undone_where_the_rules_let_it(
    first: Installation, request: ChangeRequest
) -> None:
    found = resolve(first, request, decode)
    if isinstance(found, Refusal):
        return
    undo = ChangeRequest(
        package=first.package,
        parameters=dict(first.given),
        secrets=first.secrets,
        exact=True,
        allow_downgrade=True,
    )
    back = resolve(found.installation, undo, decode)
    if isinstance(back, Resolved):
        assert back.installation == first
