"""A change of what is installed: its faults, the plan that it starts, and what it says."""

from collections.abc import Mapping
from typing import Any

import pytest

from temporal_plans.domain.packages.changes import (
    Cause,
    Change,
    ChangeRequest,
    ParameterChange,
    ParameterEffect,
)
from temporal_plans.domain.packages.installation import (
    Installation,
    PackageDefinition,
    Switches,
    definition_of,
)
from temporal_plans.domain.packages.package import Operator, Package
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.domain.packages.versions import is_lower
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.loading.packages.structures import decode
from unit.domain.packages.installations import WORK, definition, installed, plans

PLANS = plans("deploy", "update", "backup", "restore", "cleanup")
PACKAGE = definition(
    plans=PLANS,
    A={"default": "1"},
    B={"default": "1"},
    BACKUP={"trigger": "backup"},
    FILE={"trigger": "backup"},
    RESTORE={"trigger": "restore"},
    GONE={"trigger": "nowhere"},
    END={"trigger": "cleanup"},
    FIRST={"trigger": "deploy"},
)


def resolved(
    before: Installation | None, package: PackageDefinition | None = None, **asked: Any
) -> Resolved | Refusal:
    parameters = asked.pop("parameters", {})
    return resolve(before, ChangeRequest(package=package, parameters=parameters, **asked), decode)


def accepted(
    before: Installation | None, package: PackageDefinition | None = None, **asked: Any
) -> Resolved:
    answer = resolved(before, package, **asked)
    assert isinstance(answer, Resolved), str(answer)
    return answer


def refused(
    before: Installation | None, package: PackageDefinition | None = None, **asked: Any
) -> list[str]:
    """Return the reasons as texts."""
    answer = resolved(before, package, **asked)
    assert isinstance(answer, Refusal), answer.change
    assert answer.code == Code.CONFIGURATION
    return [str(reason) for reason in answer.reasons]


PLACE: dict[str, Any] = {"instance": "shop", "cluster": "east", "namespace": "prod"}


@pytest.mark.parametrize(
    ("given", "asked", "plan", "why"),
    [
        pytest.param({}, {}, "", "nothing differs", id="nothing"),
        pytest.param({"A": "2"}, {"A": "2"}, "", "nothing differs", id="the-same"),
        pytest.param({}, {"A": None}, "", "nothing differs", id="unset-what-is-not-given"),
        pytest.param({}, {"A": "2"}, "update", "parameter A has no trigger", id="no-trigger"),
        pytest.param({}, {"A": "1"}, "update", "A", id="its-default-is-a-change"),
        pytest.param({"A": "2"}, {"A": None}, "update", "A", id="unset"),
        pytest.param({}, {"A": ""}, "update", "A", id="empty-is-a-value"),
        pytest.param({}, {"BACKUP": "x"}, "backup", "BACKUP triggers it", id="trigger"),
        pytest.param({"FILE": "f"}, {"FILE": None}, "backup", "FILE triggers", id="unset-trigger"),
        pytest.param(
            {}, {"BACKUP": "x", "FILE": "y"}, "backup", "BACKUP, FILE trigger it", id="two-same"
        ),
        pytest.param({}, {"A": "2", "BACKUP": "x"}, "backup", "BACKUP triggers", id="and-silent"),
        pytest.param({}, {"FIRST": "x"}, "deploy", "FIRST triggers it", id="explicit-deploy"),
    ],
)
def test_the_plan_of_changed_parameters(
    given: dict[str, str], asked: dict[str, str | None], plan: str, why: str
) -> None:
    change = accepted(installed(PACKAGE, given), parameters=asked).change
    assert change.plan == plan
    assert why in change.why
    assert change.cause is (Cause.PARAMETERS if plan else Cause.NOTHING)


@pytest.mark.parametrize(
    ("asked", "fields", "text"),
    [
        ({"BACKUP": "x", "RESTORE": "y"}, ["parameters"], "backup: BACKUP; restore: RESTORE"),
        ({"GONE": "x"}, ["parameters.GONE"], "trigger nowhere is not a plan"),
        ({"END": "x"}, ["parameters.END"], "runs at the uninstall only"),
        ({"AA": "x"}, ["parameters.AA"], "not a parameter of the package"),
        ({"AA": None}, ["parameters.AA"], "did you mean A"),
    ],
)
def test_refused_changes_of_parameters(
    asked: dict[str, str | None], fields: list[str], text: str
) -> None:
    reasons = refused(installed(PACKAGE), parameters=asked)
    assert [reason.split(":")[0] for reason in reasons] == fields
    assert text in " ".join(reasons)


@pytest.mark.parametrize(
    ("names", "plan"),
    [(["deploy", "update"], "update"), (["deploy"], "deploy"), (["deploy", "upgrade"], "deploy")],
)
def test_without_a_trigger_it_is_update_else_deploy(names: list[str], plan: str) -> None:
    package = definition(plans=plans(*names), A={})
    assert accepted(installed(package), parameters={"A": "1"}).change.plan == plan


def test_without_update_and_deploy_there_is_no_plan_for_parameters() -> None:
    package = definition(plans=plans("upgrade"), A={})
    assert "neither update nor deploy" in refused(installed(package), parameters={"A": "1"})[0]


def test_a_parameter_without_a_trigger_beside_one_with_a_trigger_is_warned_about() -> None:
    change = accepted(installed(PACKAGE), parameters={"A": "2", "BACKUP": "x", "B": "3"}).change
    assert [one.field for one in change.warnings] == ["parameters.A", "parameters.B"]
    assert "takes effect where plan backup, or a later one, renders it" in str(change.warnings[0])


@pytest.mark.parametrize(
    ("names", "plan"),
    [
        (["deploy", "update", "upgrade"], "upgrade"),
        (["deploy", "update"], "update"),
        (["deploy"], "deploy"),
    ],
)
def test_the_plan_of_another_version_is_found_in_the_new_one(names: list[str], plan: str) -> None:
    new = definition("b", plans=plans(*names), version="1.1.0")
    before = installed(definition(plans=plans("deploy", "update", "upgrade")))
    change = accepted(before, new).change
    assert (change.plan, change.cause) == (plan, Cause.VERSION)
    assert change.summary == "version 1.0.0 -> 1.1.0"
    if plan != "upgrade":
        assert "no plan upgrade" in change.why


def test_a_version_without_any_of_the_plans_is_refused() -> None:
    new = definition("b", plans=plans("backup"), version="1.1.0")
    assert refused(installed(PACKAGE), new) == [
        "package: has none of the plans upgrade, update, deploy"
    ]


@pytest.mark.parametrize(
    ("new_plans", "asked", "plan"),
    [
        pytest.param(["deploy", "update"], {"FIRST": "x"}, "update", id="triggers-deploy"),
        pytest.param(["deploy", "upgrade"], {"A": "2"}, "upgrade", id="falls-back-to-deploy"),
        pytest.param(["deploy", "update"], {"A": "2"}, None, id="falls-back-to-update"),
        pytest.param(["deploy", "update", "backup"], {"BACKUP": "2"}, None, id="another-plan"),
        pytest.param(["deploy", "update", "backup"], {"NEW": "2"}, "update", id="a-new-parameter"),
    ],
)
def test_another_version_together_with_parameters(
    new_plans: list[str], asked: dict[str, str | None], plan: str | None
) -> None:
    old: dict[str, Any] = {"A": {}, "BACKUP": {"trigger": "backup"}, "FIRST": {"trigger": "deploy"}}
    before = installed(definition(plans=PLANS, **old))
    new = definition("b", plans=plans(*new_plans), NEW={"trigger": "backup"}, **old)
    if plan is None:
        (name,) = asked
        (reason,) = refused(before, new, parameters=asked)
        assert f"can't change together with parameter {name}" in reason
        assert "change the version first" in reason
    else:
        assert accepted(before, new, parameters=asked).change.plan == plan


def test_values_of_parameters_that_the_new_version_lacks_are_dropped() -> None:
    before = installed(PACKAGE, {"A": "2", "BACKUP": "x", "FILE": "y"})
    new = definition("b", plans=plans("deploy"), A={"default": "1"})
    done = accepted(before, new, parameters={"FILE": None})
    assert done.installation.given == {"A": "2"}
    assert [(one.name, one.effect.value, one.before) for one in done.change.parameters] == [
        ("BACKUP", "drop", "x"),
        ("FILE", "drop", "y"),
    ]
    assert "BACKUP: is not a parameter" in refused(before, new, parameters={"BACKUP": "z"})[0]


def test_another_default_is_told() -> None:
    new = definition("b", plans=PLANS, A={"default": "7"}, B={"default": "1"})
    old = definition(plans=PLANS, A={"default": "1"}, B={"default": "1"})
    change = accepted(installed(old), new).change
    wanted = ParameterChange(name="A", effect=ParameterEffect.DEFAULT, before="1", after="7")
    assert change.parameters == (wanted,)


def test_the_installation_runs_deploy_and_copies_defaults_of_immutable_parameters() -> None:
    package = definition(
        plans=PLANS, DISK={"default": "5Gi", "immutable": True}, A={"default": "1"}, B={}
    )
    done = accepted(None, package, parameters={"B": "x"}, **PLACE)
    assert done.installation == installed(package, {"B": "x", "DISK": "5Gi"})
    assert (done.change.plan, done.change.cause) == ("deploy", Cause.INSTALLATION)
    given = accepted(None, package, parameters={"DISK": "6Gi"}, **PLACE)
    assert given.installation.given == {"DISK": "6Gi"}


def test_an_installation_needs_a_package_a_plan_deploy_and_a_place() -> None:
    assert "package: nothing is installed" in refused(None, **PLACE)[0]
    assert refused(None, definition(plans=plans("update")), instance="a", cluster="c") == [
        "namespace: is missing; name the namespace",
        "package: has no plan deploy; add the plan deploy to the package",
    ]


@pytest.mark.parametrize(
    ("definition_", "text", "problem"),
    [
        ({"required": True}, None, "is required but has no value"),
        ({"required": True}, "", "is required but has no value"),
        ({"type": "integer"}, "x", "must be a whole number"),
        ({"enum": ["a"]}, "b", "must be one of a"),
        ({"type": "array"}, "{a: b}", "must be a YAML list"),
        ({"type": "integer"}, "", None),
        ({"enum": ["a"], "required": True}, "a", None),
    ],
)
def test_values_are_checked(
    definition_: Mapping[str, Any], text: str | None, problem: str | None
) -> None:
    package = definition(plans=PLANS, P=definition_, Q={})
    before = installed(definition(plans=PLANS, Q={}))
    asked = {} if text is None else {"P": text}
    answers = [
        resolved(None, package, parameters=asked, **PLACE),
        resolved(before, package.but(content="b" * 64), parameters=asked),
    ]
    for answer in answers:
        if problem is None:
            assert isinstance(answer, Resolved)
        else:
            assert isinstance(answer, Refusal)
            assert [one.field for one in answer.reasons] == ["parameters.P"]
            assert problem in str(answer)


def test_all_reasons_are_given_at_once() -> None:
    package = definition(plans=PLANS, P={"type": "integer"}, Q={"required": True})
    reasons = refused(None, package, parameters={"P": "x", "R": "1"}, **PLACE)
    assert [reason.split(":")[0] for reason in reasons] == [
        "parameters.R",
        "parameters.P",
        "parameters.Q",
    ]


FIXED: Mapping[str, Any] = {"default": "5Gi", "immutable": True}


@pytest.mark.parametrize(
    ("old", "given", "new", "asked", "problem"),
    [
        pytest.param(FIXED, "5Gi", FIXED, {"P": "6Gi"}, "would change from '5Gi'", id="changed"),
        pytest.param(FIXED, "6Gi", FIXED, {"P": None}, "can't be unset", id="unset"),
        pytest.param(FIXED, "5Gi", FIXED, {"P": None}, "can't be unset", id="unset-the-default"),
        pytest.param(FIXED, "5Gi", FIXED, {"P": "5Gi"}, None, id="the-same"),
        pytest.param(FIXED, "5Gi", {**FIXED, "default": "7Gi"}, {}, None, id="another-default"),
        pytest.param(None, None, FIXED, {}, "default is 5Gi", id="new-without-a-value"),
        pytest.param(None, None, FIXED, {"P": "1Gi"}, None, id="new-with-a-value"),
        pytest.param(FIXED, "5Gi", None, {}, None, id="removed"),
        pytest.param({}, "5Gi", FIXED, {}, None, id="made-immutable-with-a-value"),
        pytest.param({}, None, FIXED, {}, "has no value", id="made-immutable-without-a-value"),
        pytest.param({}, None, FIXED, {"P": "1Gi"}, None, id="made-immutable-and-given"),
        pytest.param(FIXED, "5Gi", {}, {"P": "6Gi"}, None, id="made-mutable"),
    ],
)
def test_immutable_parameters(
    old: Mapping[str, Any] | None,
    given: str | None,
    new: Mapping[str, Any] | None,
    asked: dict[str, str | None],
    problem: str | None,
) -> None:
    before_: dict[str, Any] = {} if old is None else {"P": old}
    after_: dict[str, Any] = {} if new is None else {"P": new}
    values = {} if given is None else {"P": given}
    before = installed(definition(plans=plans("deploy"), **before_), values)
    package = definition("b", plans=plans("deploy"), **after_)
    if problem is None:
        given_after = accepted(before, package, parameters=asked).installation.given
        assert ("P" in given_after) is (new is not None)
    else:
        (reason,) = refused(before, package, parameters=asked)
        assert reason.startswith("parameters.P: ")
        assert problem in reason
    if old == new and old is not None:  # the rules of one version are the same
        same = resolved(before, parameters=asked)
        assert isinstance(same, Refusal) is (problem is not None)


def test_secret_values_are_references_and_masked() -> None:
    package = definition(plans=PLANS, KEY={"secret": True, "required": True}, TOKEN={}, A={})
    done = accepted(None, package, secrets={"KEY": "ref-1"}, parameters={"TOKEN": "t"}, **PLACE)
    assert (done.installation.secrets, done.installation.given) == (
        {"KEY": "ref-1"},
        {"TOKEN": "t"},
    )
    again = accepted(done.installation, secrets={"KEY": "ref-2", "TOKEN": "ref-3"})
    assert again.installation.secrets == {"KEY": "ref-2", "TOKEN": "ref-3"}
    assert again.installation.given == {}
    assert [(one.name, one.before, one.after) for one in again.change.parameters] == [
        ("KEY", "(secret)", "(secret)"),
        ("TOKEN", "t", "(secret)"),
    ]
    assert again.change.plan == "update"
    assert accepted(again.installation, secrets={"KEY": "ref-2"}).change.plan == ""
    back = accepted(again.installation, parameters={"TOKEN": None})
    assert back.installation.secrets == {"KEY": "ref-2"}
    (reason,) = refused(done.installation, parameters={"KEY": "open"})
    assert "--secret-parameter KEY=FILE" in reason
    assert "open" not in reason
    assert "KEY: is required" in refused(None, package, **PLACE)[0]
    both = refused(done.installation, parameters={"A": "1"}, secrets={"A": "r"})
    assert "as a text and as a secret" in both[0]
    assert "not a parameter" in refused(done.installation, secrets={"B": "r"})[0]


@pytest.mark.parametrize("field", ["instance", "namespace"])
def test_a_place_whose_name_no_object_can_have(field: str) -> None:
    (reason,) = refused(None, PACKAGE, **{**PLACE, field: "../other"})
    assert reason.startswith(f"{field}: a name must not contain '/'")


def test_unknown_parameters_are_left_out_where_the_installation_says_so() -> None:
    lenient = Switches(unknown_parameters="ignore")
    done = accepted(None, PACKAGE, parameters={"AA": "1", "A": "2"}, switches=lenient, **PLACE)
    assert done.installation.given == {"A": "2"}
    assert done.installation.switches == lenient
    assert [one.field for one in done.change.warnings] == ["parameters.AA"]
    assert accepted(done.installation, parameters={"AA": "2"}).change.plan == ""


def test_an_exact_request_unsets_what_it_does_not_name() -> None:
    before = installed(PACKAGE, {"A": "2", "B": "3"})
    done = accepted(before, parameters={"B": "3"}, exact=True)
    assert done.installation.given == {"B": "3"}
    assert [one.name for one in done.change.parameters] == ["A"]


@pytest.mark.parametrize(
    ("old", "new", "lower"),
    [
        (("1.1.0", ""), ("1.0.9", ""), True),
        (("1.1.0", ""), ("1.1.0-rc1", ""), True),
        (("1.1.0", "2.0"), ("1.1.0", "1.9"), True),
        (("1.1.0", "2.0"), ("1.2.0", "1.9"), False),
        (("1.1.0", ""), ("1.10.0", ""), False),
        (("1.1.0", ""), ("other", ""), False),
        (("1.1.0", ""), ("1.1.0", ""), False),
    ],
)
def test_a_lower_version_must_be_allowed(
    old: tuple[str, str], new: tuple[str, str], lower: bool
) -> None:
    before = installed(definition(plans=PLANS, version=old[0], application=old[1]))
    package = definition("b", plans=PLANS, version=new[0], application=new[1])
    if lower:
        assert "--allow-downgrade" in refused(before, package)[0]
    done = accepted(before, package, allow_downgrade=lower)
    assert bool(done.change.warnings) is (old == new)  # another content of the same version


def test_versions_have_an_order() -> None:
    ordered = [
        "0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
        "1.0.0-beta.11", "1.0.0-rc.1", "v1", "1.0.1", "1.2", "1.10", "9" * 5000,
    ]  # fmt: skip
    for index, one in enumerate(ordered):
        assert [is_lower(one, other) for other in ordered] == [
            index < position for position in range(len(ordered))
        ]
    assert not is_lower("1", "1.0.0")
    assert not is_lower("1.0.0", "1")
    assert not is_lower("1.0.0+a", "1.0.0+b")


def test_the_package_and_its_place_stay() -> None:
    before = installed(PACKAGE)
    other = definition("b", plans=PLANS, name="shop")
    assert "another package than the installed store" in refused(before, other)[0]
    assert accepted(before, PACKAGE, **PLACE).change.plan == ""
    reasons = refused(before, cluster="west", namespace="test", instance="other")
    assert [reason.split(":")[0] for reason in reasons] == ["instance", "cluster", "namespace"]


PLANS_THAT_MAY_NOT_RUN: list[tuple[Mapping[str, Any], str | None]] = [
    ({"phases": [{"name": "a/b"}]}, "plans.deploy.phases.a/b"),
    ({"phases": [{"name": "a"}, {"name": "a"}]}, None),
    ({"strategy": "Serial"}, "plans.deploy.strategy"),
    ({"strategy": "max-parallel"}, "plans.deploy.strategy.limit"),
    ({"conflictsWith": ["none"]}, "plans.deploy.conflictsWith"),
    (
        {"phases": [{"name": "a", "steps": [{"name": "s", "tasks": ["no"]}]}]},
        "plans.deploy.phases.a.steps.s.tasks",
    ),
    ({"phases": []}, None),
    ({"phases": [{"name": "a", "steps": []}]}, None),
    ({"phases": [{"name": "a", "steps": [{"name": "s"}]}]}, None),
    ({"strategy": "canary"}, None),
    (
        {"phases": [{"name": "a", "steps": [{"name": "s", "approval": "", "sleep": "1s"}]}]},
        "plans.deploy.phases.a.steps.s",
    ),
    ({"phases": [{"name": "a", "dependsOn": ["b"]}]}, "plans.deploy.phases.a.depends-on"),
    ({"strategy": ""}, None),
]
"""Keys of a plan, and the field that is refused, if one is."""


@pytest.mark.parametrize(("plan", "field"), PLANS_THAT_MAY_NOT_RUN)
def test_plans_that_could_not_run_are_refused(plan: Mapping[str, Any], field: str | None) -> None:
    package = definition(plans={"deploy": {**WORK, **plan}})
    if field is None:
        assert accepted(None, package, **PLACE).change.plan == "deploy"
    else:
        assert [one.partition(": ")[0] for one in refused(None, package, **PLACE)] == [field]


def test_a_definition_has_no_texts_for_people_and_a_bounded_size() -> None:
    package = Package(
        operator=Operator(name="store", description="long", url="http://x", plans=PLANS),
        parameters=(
            Parameter(name="A", description="long", display_name="A", hint="h", default="1"),
        ),
        templates={"a.yaml": "long"},
    )
    found = definition_of(package, "a" * 64)
    assert "long" not in found.model_dump_json()
    assert found.parameters == (Parameter(name="A", default="1"),)
    assert PackageDefinition.model_validate_json(found.model_dump_json()) == found
    huge = definition(plans=plans("deploy"), A={"default": "x" * 400_000})
    assert "more than 400000 characters" in refused(None, huge, **PLACE)[0]
    text = {"A": "x" * 200_001}
    assert "more than 200000 characters" in refused(installed(PACKAGE), parameters=text)[0]


def test_a_summary_is_one_line() -> None:
    def summary(**asked: str | None) -> str:
        before = installed(PACKAGE, {"B": "2"})
        change: Change = accepted(before, parameters=asked).change
        return change.summary

    assert summary(A="2") == "A 1 -> 2"
    assert summary(A="", B=None) == "A 1 -> (empty); B 2 -> 1"
    assert summary(BACKUP="x") == "BACKUP (none) -> x"
    assert summary() == "no change"
    assert accepted(None, PACKAGE, parameters={"A": "2"}, **PLACE).change.summary == (
        "version 1.0.0; A (none) -> 2"
    )
