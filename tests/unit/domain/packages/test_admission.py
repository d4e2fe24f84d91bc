"""Admission: every row of the decision table of the system that is followed, and its test cases."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.domain.owners.admission import StartRequest
from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.admission import (
    Admission,
    InstanceRequest,
    InstanceSituation,
    RemovalRequest,
    admission,
)
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import Installation
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.loading.packages.structures import decode
from unit.domain.packages.installations import definition, installed, plans

PLANS = plans(
    "deploy",
    "update",
    "backup",
    "cleanup",
    monitor={"conflictsWith": []},
    watch={"conflictsWith": ["monitor"]},
    restore={"reentrant": False},
    guard={"conflictsWith": [], "reentrant": False},
)
PARAMETERS: Mapping[str, Any] = {
    "A": {"default": "1"},
    "B": {"trigger": "backup"},
    "R": {"trigger": "restore"},
    "M": {"trigger": "monitor"},
    "D": {"trigger": "deploy"},
    "GONE": {"trigger": "nowhere"},
    "END": {"trigger": "cleanup"},
    "N": {"type": "integer"},
    "FIXED": {"default": "1", "immutable": True},
}
PACKAGE = definition(plans=PLANS, **PARAMETERS)
NEWER = definition("b", version="1.1.0", plans=PLANS, **PARAMETERS)
BARE = definition("b", version="1.1.0", plans=plans("backup"), **PARAMETERS)
INSTALLED = installed(PACKAGE, {"FIXED": "1"})


def busy(plan: str, status: Status = Status.IN_PROGRESS) -> PlanSituation:
    return PlanSituation(plan, status)


def failed(plan: str) -> PlanSituation:
    return PlanSituation(plan, Status.ERROR, resting=True)


def stopped(plan: str) -> PlanSituation:
    return PlanSituation(plan, Status.WAITING, resting=True, stopped=True)


def closed(plan: str, status: Status = Status.COMPLETE) -> PlanSituation:
    return PlanSituation(plan, status, open=False)


def now(*plans: PlanSituation, uninstalling: bool = False) -> InstanceSituation:
    return InstanceSituation("service shop", INSTALLED, plans, uninstalling)


def change(package: Any = None, *, force: bool = False, **parameters: str | None) -> ChangeRequest:
    return ChangeRequest(package=package, parameters=parameters, force=force)


def start(plan: str, verb: Verb = Verb.START, **command: Any) -> StartRequest:
    return StartRequest(plan, verb, Command(**command))


class Begun(NamedTuple):
    """What is admitted; no plan: nothing to run."""

    plan: str = ""
    superseded: tuple[str, ...] = ()
    repeats: bool = False


class Row(NamedTuple):
    """A row of the decision table, or an instance of it. ``note`` says what became of the row."""

    number: int
    note: str
    instance: InstanceSituation
    request: InstanceRequest
    answer: Code | Begun
    text: str = ""


KEPT, NOT_APPLICABLE = "kept", "not applicable"
BY_STOP = "changed: allowed by stop"
BY_CONFLICTS = "changed: by conflicts-with"
BY_REENTRANT = "changed: by reentrant"
NO_TRIGGER = "changed: a trigger cleanup is refused"

IDLE = now()
RUNS = now(busy("deploy"))
REMOVED = now(busy("cleanup"), uninstalling=True)

TABLE = (
    # 0: nothing differs. Not a row here, because nothing compares whole resources
    Row(0, NOT_APPLICABLE, IDLE, change(), Begun()),
    # 1: a version that can't be read. The request has the definitions in it
    Row(1, NOT_APPLICABLE, IDLE, change(NEWER), Begun("update")),
    Row(2, KEPT, IDLE, start("bakup"), Code.NOT_FOUND, "did you mean backup?"),
    Row(3, KEPT, IDLE, change(X="1"), Code.CONFIGURATION, "is not a parameter"),
    Row(4, KEPT, IDLE, change(FIXED="2"), Code.CONFIGURATION, "is immutable"),
    Row(5, KEPT, IDLE, change(N="x"), Code.CONFIGURATION, "whole number"),
    Row(6, KEPT, IDLE, change(GONE="x"), Code.CONFIGURATION, "nowhere is not a plan"),
    Row(7, KEPT, IDLE, change(B="x", M="x"), Code.CONFIGURATION, "several plans at once"),
    Row(
        8,
        KEPT,
        InstanceSituation("service shop", installed(BARE)),
        change(A="x"),
        Code.CONFIGURATION,
        "neither update nor deploy",
    ),
    Row(9, KEPT, REMOVED, start("backup"), Code.UNINSTALLING, "is being uninstalled"),
    Row(10, KEPT, REMOVED, change(A="2"), Code.UNINSTALLING),
    Row(10, KEPT, REMOVED, change(NEWER), Code.UNINSTALLING),
    Row(11, KEPT, now(uninstalling=True), start("deploy"), Code.UNINSTALLING),
    Row(12, KEPT, REMOVED, RemovalRequest(), Begun()),
    Row(12, KEPT, REMOVED, start("cleanup"), Begun("cleanup", ("cleanup",), repeats=True)),
    Row(13, KEPT, RUNS, change(B="x"), Code.IN_USE, "plan deploy is IN_PROGRESS"),
    Row(13, BY_CONFLICTS, now(busy("guard")), change(M="x"), Begun("monitor")),
    Row(14, KEPT, RUNS, change(NEWER), Code.IN_USE, "stop plan deploy"),
    Row(14, KEPT, now(busy("monitor")), change(NEWER), Code.IN_USE, "stop plan monitor"),
    Row(14, BY_REENTRANT, now(busy("restore")), change(NEWER), Code.IN_USE, "restore by force"),
    # 15: no request can name a version and a plan (test_a_change_names_no_plan)
    Row(15, KEPT, IDLE, change(NEWER), Begun("update")),
    Row(16, KEPT, IDLE, change(NEWER, B="x"), Code.CONFIGURATION, "starts plan backup"),
    Row(17, KEPT, RUNS, start("backup"), Code.IN_USE, "or stop plan deploy; it may be restarted"),
    Row(17, BY_CONFLICTS, now(busy("guard")), start("monitor"), Begun("monitor")),
    Row(17, BY_CONFLICTS, now(busy("watch")), start("monitor"), Code.IN_USE),
    Row(18, BY_STOP, now(stopped("deploy")), start("backup"), Begun("backup", ("deploy",))),
    # 19: no request can name parameters of the installation and a plan
    Row(19, KEPT, IDLE, start("backup", parameters={"A": "2"}), Begun("backup")),
    Row(20, KEPT, IDLE, start("cleanup"), Code.BY_ITSELF, "uninstall"),
    Row(21, KEPT, IDLE, change(NEWER), Begun("update")),
    Row(21, KEPT, IDLE, change(BARE), Code.CONFIGURATION, "none of the plans"),
    Row(22, KEPT, IDLE, change(B="x"), Begun("backup")),
    Row(22, KEPT, RUNS, change(D="x"), Begun("deploy", ("deploy",), repeats=True)),
    Row(22, BY_REENTRANT, now(busy("restore")), change(R="x"), Code.NOT_REENTRANT, "--force"),
    Row(
        22,
        BY_REENTRANT,
        now(busy("restore")),
        change(R="x", force=True),
        Begun("restore", ("restore",), repeats=True),
    ),
    Row(22, NO_TRIGGER, IDLE, change(END="x"), Code.CONFIGURATION, "at the uninstall only"),
    Row(23, KEPT, IDLE, start("backup"), Begun("backup")),
    # 24: a plan that is over is closed, and nobody writes its status
    Row(24, NOT_APPLICABLE, now(closed("deploy")), start("backup"), Begun("backup")),
    Row(25, KEPT, RUNS, start("deploy"), Begun("deploy", ("deploy",), repeats=True)),
    Row(25, BY_REENTRANT, now(busy("restore")), start("restore"), Code.NOT_REENTRANT, "--force"),
    Row(
        25,
        BY_REENTRANT,
        now(busy("restore")),
        start("restore", force=True),
        Begun("restore", ("restore",), repeats=True),
    ),
    Row(26, KEPT, RUNS, change(), Begun()),
)


def test_every_row_of_the_decision_table_is_here() -> None:
    assert list(dict.fromkeys(row.number for row in TABLE)) == list(range(27))
    changed = {row.number for row in TABLE if row.note.startswith("changed")}
    assert changed == {13, 14, 17, 18, 22, 25}
    assert {row.number for row in TABLE if row.note == NOT_APPLICABLE} == {0, 1, 24}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.number}-{row.note}")
def test_the_decision_table(row: Row) -> None:
    check(admission(row.instance, row.request, decode), row.answer, row.text)


def check(found: Admission, answer: Code | Begun, text: str = "") -> None:
    if isinstance(answer, Code):
        assert found.refusal is not None, found
        assert found.refusal.code == answer, str(found.refusal)
        assert text in str(found.refusal)
    else:
        assert found.refusal is None, str(found.refusal)
        assert Begun(found.plan, found.superseded, found.repeats) == answer


@pytest.mark.parametrize("key", ["plan", "start", "plan_name"])
def test_a_change_names_no_plan(key: str) -> None:
    with pytest.raises(ValidationError):
        ChangeRequest.model_validate({key: "backup"})


# The tests of the original's webhook: an instance with the plans deploy and update, and others.
OV = ("deploy", "update", "backup", "other", "cleanup")
OLD: dict[str, Any] = {
    "FOO": {"trigger": "deploy"},
    "SAME": {"trigger": "deploy"},
    "BAR": {"trigger": "update"},
    "GONE": {"trigger": "nowhere"},
    "PLAIN": {},
}


def version(content: str, **parameters: Any) -> Any:
    known = {name: one for name, one in (OLD | parameters).items() if one is not None}
    return definition(content, version=f"1.0.{ord(content)}", plans=plans(*OV), **known)


OLD_VERSION, NEW_VERSION = version("a"), version("b")
FIXED = {"immutable": True, "default": "1"}


class Case(NamedTuple):
    name: str
    installation: Installation
    request: InstanceRequest
    answer: Code | Begun
    plans: tuple[PlanSituation, ...] = ()
    uninstalling: bool = False


AT = installed(OLD_VERSION)
SCHEDULED = (busy("deploy", Status.PENDING),)
CLEANING = (busy("cleanup"),)
WITH_FIXED = installed(version("a", P=FIXED), {"P": "1"})
PLAIN_P = installed(version("a", P={}))
GIVEN_P = installed(version("a", P={}), {"P": "2"})

CASES = (
    Case("no change", AT, change(), Begun()),
    Case("no change while a plan is scheduled", AT, change(), Begun(), SCHEDULED),
    Case("direct trigger, idle", AT, start("deploy"), Begun("deploy")),
    Case(
        "same plan again directly",
        AT,
        start("deploy"),
        Begun("deploy", ("deploy",), repeats=True),
        SCHEDULED,
    ),
    Case("overriding existing plan", AT, start("update"), Code.IN_USE, SCHEDULED),
    Case("cleanup overriding", AT, RemovalRequest(), Begun("cleanup", ("deploy",)), SCHEDULED),
    Case("other plan over cleanup", AT, start("deploy"), Code.UNINSTALLING, CLEANING, True),
    Case("uninstall again while cleanup runs", AT, RemovalRequest(), Begun(), CLEANING, True),
    Case("plan is over", AT, start("update"), Begun("update"), (closed("deploy"),)),
    Case("plan failed", AT, start("update"), Begun("update", ("deploy",)), (failed("deploy"),)),
    Case("user triggers cleanup", AT, start("cleanup"), Code.BY_ITSELF),
    Case("parameter update while deleting", AT, change(FOO="1"), Code.UNINSTALLING, (), True),
    Case("upgrade while deleting", AT, change(NEW_VERSION), Code.UNINSTALLING, (), True),
    Case("upgrade on idle", AT, change(NEW_VERSION), Begun("update")),
    Case("upgrade on scheduled", AT, change(NEW_VERSION), Code.IN_USE, SCHEDULED),
    Case("parameter update idle", AT, change(BAR="1"), Begun("update")),
    Case("several params, same trigger", AT, change(FOO="1", SAME="1"), Begun("deploy")),
    Case(
        "param update on scheduled, same plan",
        AT,
        change(FOO="1"),
        Begun("deploy", ("deploy",), repeats=True),
        SCHEDULED,
    ),
    Case("param update on scheduled, other plan", AT, change(BAR="1"), Code.IN_USE, SCHEDULED),
    Case("params with distinct triggers", AT, change(FOO="1", BAR="1"), Code.CONFIGURATION),
    Case("param not in OV", AT, change(NONE="1"), Code.CONFIGURATION),
    Case("param whose trigger plan is missing", AT, change(GONE="1"), Code.CONFIGURATION),
    Case("upgrade + other trigger", AT, change(NEW_VERSION, BAR="1"), Code.CONFIGURATION),
    Case("upgrade + trigger deploy", AT, change(NEW_VERSION, FOO="1"), Begun("update")),
    Case(
        "upgrade + removal of a param absent in the new OV",
        GIVEN_P,
        change(NEW_VERSION, P=None),
        Begun("update"),
    ),
    Case("immutable param updated", WITH_FIXED, change(P="2"), Code.CONFIGURATION),
    Case(
        "upgrade: new immutable param without value",
        AT,
        change(version("b", P=FIXED)),
        Code.CONFIGURATION,
    ),
    Case(
        "upgrade: new immutable param with value",
        AT,
        change(version("b", P=FIXED), P="2"),
        Begun("update"),
    ),
    Case("upgrade: immutable param removed", WITH_FIXED, change(NEW_VERSION), Begun("update")),
    Case(
        "upgrade: param with value made immutable",
        GIVEN_P,
        change(version("b", P=FIXED)),
        Begun("update"),
    ),
    Case(
        "upgrade: param without value made immutable",
        PLAIN_P,
        change(version("b", P=FIXED)),
        Code.CONFIGURATION,
    ),
    Case(
        "upgrade: same, value given in the same update",
        PLAIN_P,
        change(version("b", P={**FIXED, "trigger": "deploy"}), P="3"),
        Begun("update"),
    ),
    Case(
        "upgrade: immutable made mutable", WITH_FIXED, change(version("b", P={})), Begun("update")
    ),
    Case("unknown plan name", AT, start("none"), Code.NOT_FOUND),
)
"""Not here: changed labels and emptied plan names, which no request has, and an upgrade or changed
parameters together with a plan, which no request can say (rows 15 and 19)."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_the_cases_of_the_original(case: Case) -> None:
    instance = InstanceSituation("service shop", case.installation, case.plans, case.uninstalling)
    check(admission(instance, case.request, decode), case.answer)


def test_a_removed_immutable_value_disappears() -> None:
    instance = InstanceSituation("service shop", WITH_FIXED)
    resolved = admission(instance, change(NEW_VERSION), decode).resolved
    assert resolved is not None
    assert resolved.installation.given == {}


def test_stop_is_the_cancel_and_an_error_that_rests_is_no_obstacle() -> None:
    for one in (stopped("deploy"), failed("deploy")):
        check(admission(now(one), start("backup"), decode), Begun("backup", ("deploy",)))
        check(admission(now(one), change(NEWER), decode), Begun("update", ("deploy",)))
        check(admission(now(one), start("deploy"), decode), Begun("deploy", ("deploy",)))
    check(admission(now(busy("deploy", Status.WAITING)), start("backup"), decode), Code.IN_USE)


def test_another_version_supersedes_plans_that_would_not_conflict() -> None:
    check(admission(now(stopped("guard")), change(NEWER), decode), Begun("update", ("guard",)))
    check(admission(now(stopped("guard")), start("monitor"), decode), Begun("monitor"))


@pytest.mark.parametrize(
    ("plan", "fix"),
    [
        ("deploy", "wait for its end, or stop plan deploy; it may be restarted"),
        ("restore", "stop plan restore by force (--force): it is not reentrant"),
        ("former", "wait for its end, or stop plan former"),
    ],
)
def test_a_refusal_names_the_plan_and_what_is_allowed(plan: str, fix: str) -> None:
    refusal = admission(now(busy(plan)), start("backup"), decode).refusal
    assert refusal is not None
    (reason,) = refusal.reasons
    assert reason.problem == f"plan {plan} is IN_PROGRESS, and plan backup can't run beside it"
    assert reason.fix.endswith(fix)


def test_values_for_one_run_are_checked() -> None:
    secret = installed(
        definition(plans=PLANS, **PARAMETERS, S={"secret": True}, T={}), {}, {"T": "r"}
    )
    instance = InstanceSituation("service shop", secret)

    def asked(**values: str) -> Admission:
        return admission(instance, start("backup", parameters=values), decode)

    check(asked(A="x", N="3"), Begun("backup"))
    for values, text in (
        ({"N": "x"}, "parameters.N: must be a whole number"),
        ({"X": "x"}, "parameters.X: is not a parameter"),
        ({"FIXED": "2"}, "parameters.FIXED: is immutable"),
        ({"S": "open"}, "parameters.S: is secret"),
        ({"T": "open"}, "parameters.T: is secret"),
    ):
        check(asked(**values), Code.INVALID, text)
        assert "open" not in str(asked(**values).refusal)
    restarted = admission(instance, start("backup", Verb.RESTART, parameters={"X": "1"}), decode)
    check(restarted, Begun("backup"))


def test_parts_of_a_plan_that_is_not_reentrant_are_repeated_by_force_only() -> None:
    part = start("restore", Verb.RESTART, phase="main")
    check(admission(now(closed("restore")), part, decode), Code.NOT_REENTRANT)
    forced = start("restore", Verb.RESTART, phase="main", force=True)
    check(admission(now(closed("restore")), forced, decode), Begun("restore"))
    check(admission(now(), start("backup", Verb.RESTART, phase="main"), decode), Begun("backup"))


@pytest.mark.parametrize(
    ("plans_", "force", "answer", "skips"),
    [
        ([failed("cleanup")], False, Begun("cleanup", ("cleanup",)), False),
        ([failed("cleanup")], True, Begun("cleanup", ("cleanup",)), True),
        ([stopped("cleanup")], False, Begun("cleanup", ("cleanup",)), False),
        ([closed("cleanup", Status.ERROR)], False, Begun("cleanup"), False),
        ([closed("cleanup")], False, Begun(), False),
        ([busy("cleanup")], True, Begun(), False),
    ],
)
def test_a_second_uninstall(
    plans_: list[PlanSituation], force: bool, answer: Begun, skips: bool
) -> None:
    found = admission(now(*plans_, uninstalling=True), RemovalRequest(force=force), decode)
    check(found, answer)
    assert found.skips_phases is skips


def test_the_refusal_beside_a_failed_cleanup_says_what_ends_it() -> None:
    refusal = admission(now(failed("cleanup"), uninstalling=True), change(A="2"), decode).refusal
    assert "uninstall --force" in str(refusal)


def test_an_instance_has_a_plan_cleanup_whether_or_not_its_package_has() -> None:
    package = definition(plans=plans("deploy"))
    instance = InstanceSituation("service shop", installed(package), (busy("deploy"),))
    check(admission(instance, RemovalRequest(), decode), Begun("cleanup", ("deploy",)))
    check(admission(instance, start("cleanup"), decode), Code.BY_ITSELF)
    removed = instance._replace(plans=(failed("cleanup"),), uninstalling=True)
    check(admission(removed, start("cleanup"), decode), Begun("cleanup", ("cleanup",)))


def test_an_installation_is_admitted() -> None:
    request = ChangeRequest(package=PACKAGE, instance="shop", cluster="east", namespace="prod")
    instance = InstanceSituation("service shop")
    found = admission(instance, request, decode)
    check(found, Begun("deploy"))
    assert found.resolved is not None
    assert found.resolved.installation == INSTALLED


def apart(one: str, other: str) -> bool:
    """Whether neither of two plans says that the other must not run beside it."""
    return one != other and all(
        "conflictsWith" in PLANS.get(this, {}) and that not in PLANS[this]["conflictsWith"]
        for this, that in ((one, other), (other, one))
    )


@pytest.mark.parametrize("plan", [*PLANS, "former"])
@pytest.mark.parametrize("wanted", [plan for plan in PLANS if plan != "cleanup"])
def test_two_plans_run_together_only_if_neither_conflicts_with_the_other(
    plan: str, wanted: str
) -> None:
    forced = start(wanted, force=True)
    beside = admission(now(busy(plan)), forced, decode)
    again = plan == wanted
    assert (beside.refusal is None) is (again or apart(plan, wanted))
    assert beside.repeats is again
    assert (plan in admission(now(stopped(plan)), forced, decode).superseded) is not apart(
        plan, wanted
    )


def test_some_plans_run_together() -> None:
    pairs = {tuple(sorted((a, b))) for a in PLANS for b in PLANS if apart(a, b)}
    assert pairs == {("guard", "monitor"), ("guard", "watch")}


situations = st.builds(
    PlanSituation,
    plan=st.sampled_from([*PLANS, "former"]),
    status=st.sampled_from(Status),
    open=st.booleans(),
    resting=st.booleans(),
    stopped=st.booleans(),
)
parameters = st.dictionaries(
    st.sampled_from([*PARAMETERS, "X"]), st.sampled_from(["1", "2", "", None]), max_size=2
)
requests: st.SearchStrategy[InstanceRequest] = st.one_of(
    st.builds(RemovalRequest, force=st.booleans()),
    st.builds(start, st.sampled_from([*PLANS, "none"]), force=st.booleans()),
    st.builds(
        ChangeRequest,
        package=st.sampled_from([None, PACKAGE, NEWER, BARE]),
        parameters=parameters,
        exact=st.booleans(),
        force=st.booleans(),
    ),
)


@given(st.lists(situations, max_size=3, unique_by=lambda one: one.plan), st.booleans(), requests)
def test_no_request_fails_and_no_plan_runs_beside_one_that_it_excludes(
    running: list[PlanSituation], uninstalling: bool, request: InstanceRequest
) -> None:
    found = admission(now(*running, uninstalling=uninstalling), request, decode)
    if found.refusal is not None:
        assert found == Admission(found.refusal)
        assert found.refusal.reasons
        return
    open_plans = {one.plan for one in running if one.open}
    assert open_plans.issuperset(found.superseded)
    if not found.plan:
        return
    beside = open_plans.difference(found.superseded)
    assert all(apart(plan, found.plan) for plan in beside)
    if found.plan != "cleanup":  # which supersedes anything
        taken = {one.plan for one in running if one.open and not one.is_idle} - beside
        assert taken == ({found.plan} if found.repeats else set())
