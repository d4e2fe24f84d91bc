"""What a service may not be changed to (behaviour 5.10)."""

from collections.abc import Iterator
from typing import Any

import pytest

from builders.services import pod, service, task
from temporal_plans.domain.services.change_check import (
    ConfigValidator,
    refusals,
    task_env_cannot_change,
    zone_cannot_flip,
)
from temporal_plans.domain.services.spec import (
    NetworkSpec,
    PhaseYaml,
    PlanYaml,
    PodSpec,
    ResourceLimits,
    ResourceSet,
    ServiceSpec,
    VolumeSpec,
)
from temporal_plans.domain.values.refusal import Reason


def problems(old: ServiceSpec | None, new: ServiceSpec) -> dict[str, str]:
    return {one.field: one.problem for one in refusals(old, new, deployed_once=True)}


def paths(old: ServiceSpec | None, new: ServiceSpec) -> list[str]:
    return list(problems(old, new))


def allowed(kind: str, count: int) -> PodSpec:
    return pod(kind, count, allow_decommission=True)


def has(kind: str, count: int, least: int) -> str:
    return f"New config's PodSpec named '{kind}' has {count} tasks, expected >={least} tasks"


A, B = pod("a", 2), pod("b", 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(service(A, B), service(A, B), {}, id="same-size"),
        pytest.param(service(A), service(A, B), {}, id="pod-added"),
        pytest.param(service(A, B), service(A), {"pods.b": has("b", 0, 1)}, id="pod-removed"),
        pytest.param(service(A, allowed("b", 1)), service(A), {}, id="pod-removed-allowed"),
        pytest.param(service(A, pod("b", 0)), service(A), {}, id="pod-without-instances-removed"),
        pytest.param(
            service(A), service(pod("c", 2)), {"pods.a": has("a", 0, 2)}, id="pod-renamed"
        ),
        pytest.param(service(allowed("a", 2)), service(pod("c", 2)), {}, id="renamed-allowed"),
        pytest.param(
            service(A), service(pod("a", 1)), {"pods.a.count": has("a", 1, 2)}, id="decrease"
        ),
        pytest.param(
            service(allowed("a", 2)),
            service(pod("a", 1)),
            {"pods.a.count": has("a", 1, 2)},
            id="decrease-allowed-in-source-only",
        ),
        pytest.param(
            service(A), service(allowed("a", 1)), {}, id="decrease-allowed-in-destination-only"
        ),
        pytest.param(
            service(allowed("a", 2)), service(allowed("a", 1)), {}, id="decrease-allowed-in-both"
        ),
        pytest.param(service(A), service(pod("a", 3)), {}, id="increase"),
        pytest.param(None, service(A), {}, id="no-old-config"),
        pytest.param(service(A), service(A, A), {"pods.a": "is defined twice"}, id="duplicate"),
        pytest.param(
            None, service(pod("a", -1)), {"pods.a.count": "must not be negative"}, id="negative"
        ),
    ],
)
def test_pods_cannot_shrink(
    old: ServiceSpec | None, new: ServiceSpec, expected: dict[str, str]
) -> None:
    assert problems(old, new) == expected


def test_the_fix_for_pods_that_shrink_names_keys_and_values() -> None:
    two, one, none = (service(pod("a", 2)), service(pod("a", 1)), service(pod("b", 1)))
    [fewer] = refusals(two, one, deployed_once=False)
    assert fewer.fix == (
        "set pods.a.count to 2 or more, or pods.a.allow-decommission to true, and deploy again"
    )
    [gone] = refusals(two, none, deployed_once=False)
    assert "pods.a.allow-decommission set to true" in gone.fix
    assert "temporal plan uninstall" in gone.fix


def on(*networks: str) -> ServiceSpec:
    return service(pod("a", 1, networks=tuple(NetworkSpec(name=name) for name in networks)))


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        pytest.param(on(), on(), False, id="none"),
        pytest.param(on(), on("host"), False, id="host-is-none"),
        pytest.param(on("mesos-bridge"), on("host"), False, id="bridge-to-host"),
        pytest.param(on("dcos"), on("other"), False, id="overlay-to-overlay"),
        pytest.param(on(), on("dcos"), True, id="host-to-overlay"),
        pytest.param(on("dcos"), on("host"), True, id="overlay-to-host"),
        pytest.param(None, on("dcos"), False, id="first"),
    ],
)
def test_network_regime(old: ServiceSpec | None, new: ServiceSpec, refused: bool) -> None:
    assert paths(old, new) == (["pods.a.networks"] if refused else [])


def role(name: str | None) -> ServiceSpec:
    return service(pod("a", 1, pre_reserved_role=name))


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        pytest.param(role("x"), role("x"), False, id="same"),
        pytest.param(role("x"), role("y"), True, id="changed"),
        pytest.param(role(None), role("x"), True, id="added"),
        pytest.param(role("x"), role(None), True, id="removed"),
        pytest.param(role("x"), service(allowed("b", 1)), False, id="pod-is-gone"),
    ],
)
def test_pre_reservation(old: ServiceSpec, new: ServiceSpec, refused: bool) -> None:
    found = [path for path in paths(old, new) if path.endswith("role")]
    assert found == (["pods.a.pre-reserved-role"] if refused else [])


def user(own: str, of_pod: str | None = None) -> ServiceSpec:
    return service(pod("a", 1, user=of_pod), user=own)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(user("root"), user("root"), [], id="same"),
        pytest.param(user(""), user("root"), [], id="none-is-root"),
        pytest.param(user("root"), user("bob"), ["scheduler.user"], id="service"),
        pytest.param(user("root"), user("root", "root"), [], id="written-out"),
        pytest.param(user("bob"), user("bob", "bob"), [], id="written-out-in-the-pod"),
        pytest.param(user("root"), user("root", "bob"), ["pods.a.user"], id="pod"),
        pytest.param(user("root", "bob"), user("root"), ["pods.a.user"], id="pod-to-unset"),
        pytest.param(
            user("root", "bob"), user("bob", "eve"), ["scheduler.user", "pods.a.user"], id="both"
        ),
        pytest.param(user("root", "bob"), user("bob"), ["scheduler.user"], id="pod-keeps-its-own"),
    ],
)
def test_user(old: ServiceSpec, new: ServiceSpec, expected: list[str]) -> None:
    assert paths(old, new) == expected


def named(name: str) -> ServiceSpec:
    return service(A, name=name)


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        pytest.param(None, named("/team/db"), False, id="folder"),
        pytest.param(None, named("a__b"), True, id="double-underscore"),
        pytest.param(None, named("/" + "x" * 63), False, id="63-without-slashes"),
        pytest.param(None, named("x" * 64), True, id="64-at-first"),
        pytest.param(named("x" * 64), named("x" * 64), False, id="64-later"),
        pytest.param(named("db"), named("db2"), True, id="renamed"),
    ],
)
def test_name(old: ServiceSpec | None, new: ServiceSpec, refused: bool) -> None:
    assert paths(old, new) == (["name"] if refused else [])


def test_placement_is_readable() -> None:
    new = service(pod("a", 1, placement="hostname:NEAR:x"))
    assert paths(None, new) == ["pods.a.placement"]


DATA = VolumeSpec(path="data", size=10)


def with_volumes(*volumes: VolumeSpec, set_id: str = "s", of_pod: bool = False) -> ServiceSpec:
    sets = (ResourceSet(id=set_id, cpus=1, volumes=() if of_pod else volumes),)
    made = pod("a", 1, task(resource_set=set_id), volumes=volumes if of_pod else ())
    return service(made.but(resource_sets=sets))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(with_volumes(DATA), with_volumes(DATA), [], id="same"),
        pytest.param(
            with_volumes(DATA, DATA.but(path="log")),
            with_volumes(DATA.but(path="log"), DATA),
            [],
            id="order",
        ),
        pytest.param(
            with_volumes(DATA),
            with_volumes(DATA.but(size=11)),
            ["pods.a.resource-sets.s.volumes"],
            id="larger",
        ),
        pytest.param(
            with_volumes(), with_volumes(DATA), ["pods.a.resource-sets.s.volumes"], id="added"
        ),
        pytest.param(
            with_volumes(DATA), with_volumes(), ["pods.a.resource-sets.s.volumes"], id="removed"
        ),
        pytest.param(
            with_volumes(DATA),
            with_volumes(DATA, set_id="t"),
            ["pods.a.tasks.server.resource-set"],
            id="moved-to-another-set",
        ),
        pytest.param(with_volumes(), with_volumes(set_id="t"), [], id="another-set-without"),
        pytest.param(
            with_volumes(DATA, of_pod=True),
            with_volumes(of_pod=True),
            ["pods.a.volumes"],
            id="of-the-pod",
        ),
        pytest.param(None, with_volumes(DATA), [], id="first"),
    ],
)
def test_volumes_cannot_change(
    old: ServiceSpec | None, new: ServiceSpec, expected: list[str]
) -> None:
    assert paths(old, new) == expected


def test_a_new_task_may_bring_volumes() -> None:
    own = ResourceSet(id="other-resource-set", cpus=1, volumes=(DATA,))
    a = pod("a", 1, task(), task("other"))
    new = service(a.but(resource_sets=(*pod("a", 1).resource_sets, own)))
    assert paths(service(pod("a", 1)), new) == []


def test_task_names_and_resource_sets() -> None:
    assert paths(None, service(pod("a", 1, task(), task()))) == ["pods.a.tasks.server"]
    lost = pod("a", 1).but(resource_sets=())
    assert paths(None, service(lost)) == ["pods.a.tasks.server.resource-set"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param(ResourceLimits(cpus=1.0, memory=32), [], id="equal"),
        pytest.param(ResourceLimits(cpus="unlimited", memory="unlimited"), [], id="unlimited"),
        pytest.param(
            ResourceLimits(cpus=0.5, memory=16),
            [
                "pods.a.tasks.server.resource-limits.cpus",
                "pods.a.tasks.server.resource-limits.memory",
            ],
            id="less",
        ),
    ],
)
def test_limits(limits: ResourceLimits, expected: list[str]) -> None:
    own = ResourceSet(id="server-resource-set", cpus=1.0, memory=32, limits=limits)
    assert paths(None, service(pod("a", 1).but(resource_sets=(own,)))) == expected


def test_plans_that_can_t_be_made_or_run() -> None:
    unknown = PlanYaml(phases={"p": PhaseYaml(pod="nobody")})
    assert paths(None, service(A, plans={"deploy": unknown})) == ["plans.deploy.phases.p.pod"]
    assert paths(None, service()) == ["plans.deploy.phases"]
    assert paths(None, service(pod("a/b", 1))) == [
        "plans.deploy.phases.a/b",
        "plans.deploy.phases.a/b.steps.a/b-0:[server]",
    ]


def test_the_developers_own_strategies_may_be_named() -> None:
    own = service(A, plans={"deploy": PlanYaml(strategy="mine", phases={"p": PhaseYaml(pod="a")})})
    assert [p.field for p in refusals(None, own, deployed_once=False)] == ["plans.deploy.strategy"]
    assert refusals(None, own, deployed_once=False, strategies={"serial", "mine"}) == ()


def test_everything_at_once() -> None:
    old = service(A, B, pod("c", 1, networks=()))
    new = service(
        pod("a", 1, placement="x"), pod("c", 1, networks=(NetworkSpec(name="dcos"),)), user="bob"
    )
    found = refusals(old, new, deployed_once=True)
    assert {one.field for one in found} == {
        "pods.a.count",
        "pods.b",
        "pods.c.networks",
        "scheduler.user",
        "pods.a.placement",
    }
    assert all(one.fix for one in found)


# --- the developer's own --------------------------------------------------------------------------


def asked(check: ConfigValidator, old: ServiceSpec | None, new: ServiceSpec) -> list[str]:
    found = refusals(old, new, deployed_once=True, extra=[check])
    return [one.field for one in found]


def env(**values: str) -> ServiceSpec:
    return service(pod("a", 1, task(env=values)))


PATH = "pods.a.tasks.server.env.X"


@pytest.mark.parametrize(
    ("old", "new", "flags", "refused"),
    [
        pytest.param(env(X="1"), env(X="1"), {}, False, id="same"),
        pytest.param(env(X="1"), env(X="2"), {}, True, id="changed"),
        pytest.param(
            env(X="1"),
            env(X="2"),
            {"allow_unset_to_set": True, "allow_set_to_unset": True},
            True,
            id="changed-with-flags",
        ),
        pytest.param(env(), env(X="1"), {}, True, id="set"),
        pytest.param(env(), env(X="1"), {"allow_unset_to_set": True}, False, id="set-allowed"),
        pytest.param(env(), env(X="1"), {"allow_set_to_unset": True}, True, id="set-other-flag"),
        pytest.param(env(X="1"), env(), {}, True, id="unset"),
        pytest.param(env(X="1"), env(), {"allow_set_to_unset": True}, False, id="unset-allowed"),
        pytest.param(env(X="1"), env(), {"allow_unset_to_set": True}, True, id="unset-other-flag"),
        pytest.param(env(Y="1"), env(Y="2"), {}, False, id="another-variable"),
        pytest.param(None, env(X="1"), {}, False, id="first"),
        pytest.param(service(pod("b", 1)), service(pod("b", 1)), {}, False, id="no-such-pod"),
    ],
)
def test_task_env(
    old: ServiceSpec | None, new: ServiceSpec, flags: dict[str, bool], refused: bool
) -> None:
    check = task_env_cannot_change("a", "server", "X", **flags)
    assert asked(check, old, new) == ([PATH] if refused else [])


def placed(placement: str) -> ServiceSpec:
    return service(pod("a", 1, placement=placement))


ZONES, HOSTS = '[["@zone", "GROUP_BY", "3"]]', '[["hostname", "UNIQUE"]]'


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        pytest.param(placed(ZONES), placed(ZONES), False, id="same"),
        pytest.param(placed(ZONES), placed('[["@zone", "IS", "z"]]'), False, id="other-rule"),
        pytest.param(placed(HOSTS), placed(ZONES), True, id="to-zones"),
        pytest.param(placed(ZONES), placed(HOSTS), True, id="from-zones"),
        pytest.param(placed(""), placed(ZONES), True, id="empty-to-zones"),
        pytest.param(placed(""), placed(HOSTS), False, id="empty-to-hosts"),
        pytest.param(service(), placed(ZONES), False, id="pod-was-not-there"),
        pytest.param(None, placed(ZONES), False, id="first"),
    ],
)
def test_zone(old: ServiceSpec | None, new: ServiceSpec, refused: bool) -> None:
    assert asked(zone_cannot_flip("a"), old, new) == (["pods.a.placement"] if refused else [])


def test_a_pod_that_the_zone_check_names_must_be_there() -> None:
    assert asked(zone_cannot_flip("a"), None, service(pod("b", 1))) == ["pods.a"]


def test_a_check_that_fails_refuses() -> None:
    def broken(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
        yield Reason(field="x", problem="first")
        raise LookupError("no such thing")

    (problem,) = refusals(None, service(A), deployed_once=False, extra=[broken])
    assert "broken failed: LookupError: no such thing" in str(problem)


def says_nothing(old: ServiceSpec | None, new: ServiceSpec) -> Any:
    return None


def says_text(old: ServiceSpec | None, new: ServiceSpec) -> Any:
    return "too many"


def says_texts(old: ServiceSpec | None, new: ServiceSpec) -> Any:
    return ["too many"]


def says_objects(old: ServiceSpec | None, new: ServiceSpec) -> Any:
    return [Reason(problem="too many", value=object())]


def says_wrong_fields(old: ServiceSpec | None, new: ServiceSpec) -> Any:
    return [Reason.model_construct(problem=7)]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (says_nothing, "returned None instead of reasons"),
        (says_text, "returned a value of type str instead of reasons"),
        (says_texts, "yielded a value of type str instead of a Reason"),
        (says_objects, "yielded a Reason that can't be sent"),
        (says_wrong_fields, "yielded a Reason that can't be sent"),
    ],
)
def test_a_check_that_answers_something_else_is_named(check: ConfigValidator, said: str) -> None:
    (problem,) = refusals(None, service(A), deployed_once=False, extra=[check])
    assert f"the check {getattr(check, '__name__', '')} {said}" in str(problem)
    assert problem == Reason.model_validate_json(problem.model_dump_json())


def test_the_failure_of_a_check_has_its_place() -> None:
    def broken(old: ServiceSpec | None, new: ServiceSpec) -> Iterator[Reason]:
        raise LookupError("no such thing")

    (problem,) = refusals(None, service(A), deployed_once=False, extra=[broken])
    assert "test_change_check.py" in problem.trace
    assert problem.trace.endswith("LookupError: no such thing")
    assert "test_change_check" not in str(problem)
