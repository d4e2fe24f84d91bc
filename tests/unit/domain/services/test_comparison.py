"""What differs between configurations, and which tasks that restarts (behaviour 5.8, 5.9)."""

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.services import pod, service, task
from builders.tasks import by_name, record_of
from temporal_plans.domain.services.change import FieldChange, PodEffect
from temporal_plans.domain.services.change_texts import VALUE_LIMIT
from temporal_plans.domain.services.comparison import (
    differs,
    pod_changes,
    pod_fields,
    relabelled,
)
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    Discovery,
    ExternalVolume,
    HealthCheck,
    HostVolume,
    NetworkSpec,
    PodSpec,
    PortSpec,
    ReadinessCheck,
    ResourceLimits,
    ResourceSet,
    RLimit,
    SecretRef,
    ServiceSpec,
    TransportEncryption,
    VipSpec,
    VolumeSpec,
    own_set,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import Value, kebab
from temporal_plans.domain.values.ports import PortRange

PORT = PortSpec(name="api", port=80, vip=VipSpec(port=80, prefix="api"))
SERVER = task(
    env={"A": "1"},
    labels={"tier": "proxy"},
    configs=(ConfigTemplate(name="conf", template="x = 1", dest="etc/conf"),),
)
ONE = pod("web", 2, SERVER).but(
    resource_sets=(
        ResourceSet(id="server-resource-set", cpus=0.5, memory=32, ports=(PORT,)),
        ResourceSet(id="shared", cpus=1.0, memory=64),
    ),
)


def sets(**fields: object) -> PodSpec:
    own, shared = ONE.resource_sets
    return ONE.but(resource_sets=(own.but(**fields), shared))


def port(**fields: object) -> PodSpec:
    return sets(ports=(PORT.but(**fields),))


def server(**fields: object) -> PodSpec:
    return ONE.but(tasks=(SERVER.but(**fields),))


HEALTH = HealthCheck(
    cmd="up", interval=1, grace_period=1, max_consecutive_failures=1, delay=0, timeout=1
)
LIVE = "restarts"
STILL = "does not"


@pytest.mark.parametrize(
    ("new", "path", "before", "after", "effect"),
    [
        pytest.param(ONE.but(count=3), "count", "2", "3", STILL, id="count"),
        pytest.param(
            ONE.but(placement="hostname:UNIQUE"), "placement", None, "hostname:UNIQUE", STILL,
            id="placement",
        ),
        pytest.param(
            ONE.but(allow_decommission=True), "allow-decommission", "false", "true", STILL,
            id="allow-decommission",
        ),
        pytest.param(sets(cpus=1.5), "tasks.server.cpus", "0.5", "1.5", LIVE, id="cpus"),
        pytest.param(sets(memory=64), "tasks.server.memory", "32", "64", LIVE, id="memory"),
        pytest.param(sets(gpus=1), "tasks.server.gpus", "0", "1", LIVE, id="gpus"),
        pytest.param(
            ONE.but(resource_sets=(ONE.resource_sets[0], ONE.resource_sets[1].but(cpus=2.0))),
            "resource-sets.shared.cpus", "1", "2", LIVE, id="named-set",
        ),
        pytest.param(
            ONE.but(resource_sets=ONE.resource_sets[:1]),
            "resource-sets.shared", '{"id": "shared", "cpus": 1.0, "memory": 64}', None, LIVE,
            id="set-removed",
        ),
        pytest.param(
            sets(limits=ResourceLimits(cpus="unlimited")),
            "tasks.server.resource-limits", None, '{"cpus": "unlimited"}', LIVE, id="limits",
        ),
        pytest.param(port(port=81), "tasks.server.ports.api.port", "80", "81", LIVE, id="port"),
        pytest.param(
            port(env_key="PORT"), "tasks.server.ports.api.env-key", None, "PORT", LIVE,
            id="env-key",
        ),
        pytest.param(
            port(vip=VipSpec(port=81, prefix="api")),
            "tasks.server.ports.api.vip.port", "80", "81", LIVE, id="vip",
        ),
        pytest.param(
            port(ranges=(PortRange(begin=1, end=2),)),
            "tasks.server.ports.api.ranges", None, '[{"begin": 1, "end": 2}]', LIVE, id="ranges",
        ),
        pytest.param(
            port(advertise=True), "tasks.server.ports.api.advertise", "false", "true", STILL,
            id="advertise",
        ),
        pytest.param(server(cmd="./go"), "tasks.server.cmd", "./run", "./go", LIVE, id="cmd"),
        pytest.param(
            server(goal=Goal.FINISH), "tasks.server.goal", "RUNNING", "FINISH", LIVE, id="goal"
        ),
        pytest.param(
            server(essential=False), "tasks.server.essential", "true", "false", LIVE,
            id="essential",
        ),
        pytest.param(server(env={"A": "2"}), "tasks.server.env.A", "1", "2", LIVE, id="env"),
        pytest.param(server(env={}), "tasks.server.env.A", "1", None, LIVE, id="env-removed"),
        pytest.param(
            server(env={"A": "1", "count": "3"}), "tasks.server.env.count", None, "3", LIVE,
            id="env-named-like-a-field",
        ),
        pytest.param(
            server(labels={}), "tasks.server.labels.tier", "proxy", None, LIVE, id="labels"
        ),
        pytest.param(
            server(kill_grace_period=5), "tasks.server.kill-grace-period", "0", "5", LIVE,
            id="kill-grace-period",
        ),
        pytest.param(
            server(health_check=HEALTH), "tasks.server.health-check", None,
            '{"cmd": "up", "interval": 1.0, "grace-period": 1.0, "max-consecutive-failures": 1,'
            ' "delay": 0.0, "timeout": 1.0}',
            LIVE, id="health-check",
        ),
        pytest.param(
            server(configs=(SERVER.configs[0].but(template="x = 2"),)),
            "tasks.server.configs.conf.template", "x = 1", "x = 2", LIVE, id="template",
        ),
        pytest.param(
            server(discovery=Discovery(prefix="web")), "tasks.server.discovery", None,
            '{"prefix": "web"}', LIVE, id="discovery",
        ),
        pytest.param(
            server(transport_encryption=(TransportEncryption(name="t", type="TLS"),)),
            "tasks.server.transport-encryption.t", None, '{"name": "t", "type": "TLS"}', LIVE,
            id="transport-encryption",
        ),
        pytest.param(
            server(resource_set="shared"),
            "tasks.server.resource-set", None, "shared", LIVE, id="resource-set",
        ),
        pytest.param(ONE.but(uris=("u",)), "uris", None, '["u"]', LIVE, id="uris"),
        pytest.param(ONE.but(user="bob"), "user", "root", "bob", LIVE, id="user"),
        pytest.param(
            ONE.but(secrets=(SecretRef(name="s", secret="a/b", env_key="S"),)),
            "secrets.s", None, '{"name": "s", "secret": "a/b", "env-key": "S"}', LIVE,
            id="secret",
        ),
        pytest.param(
            ONE.but(rlimits=(RLimit(name="RLIMIT_NOFILE"),)),
            "rlimits.RLIMIT_NOFILE", None, '{"name": "RLIMIT_NOFILE"}', LIVE, id="rlimit",
        ),
        pytest.param(
            ONE.but(networks=(NetworkSpec(name="host"),)),
            "networks.host", None, '{"name": "host"}', LIVE, id="network-without-settings",
        ),
    ],
)  # fmt: skip
def test_one_field(
    new: PodSpec, path: str, before: str | None, after: str | None, effect: str
) -> None:
    restarts = effect == LIVE
    change = FieldChange(path=path, before=before, after=after, restarts=restarts)
    assert pod_fields(ONE, new)[0] == change
    back = FieldChange(path=path, before=after, after=before, restarts=restarts)
    assert pod_fields(new, ONE)[0] == back
    assert differs(ONE, new) is differs(new, ONE) is restarts


def test_a_task_that_is_new_is_one_change() -> None:
    other = task("sidecar", Goal.ONCE)
    (change,) = pod_fields(
        ONE,
        pod("web", 2, SERVER, other).but(
            resource_sets=(*ONE.resource_sets, ResourceSet(id="sidecar-resource-set", cpus=0.1))
        ),
    )
    assert (change.path, change.before, change.restarts) == ("tasks.sidecar", None, True)
    assert change.after is not None
    assert '"goal": "ONCE"' in change.after


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(ONE, id="itself"),
        pytest.param(ONE.but(user="root"), id="no-user-is-root"),
        pytest.param(ONE.but(resource_sets=ONE.resource_sets[::-1]), id="order-of-sets"),
        pytest.param(server(env=dict(SERVER.env)), id="equal-values"),
    ],
)
def test_nothing(new: PodSpec) -> None:
    assert pod_fields(ONE, new) == ()
    assert not differs(ONE, new)


def test_long_values_are_cut_to_where_they_differ() -> None:
    before = "same line\n" * 40 + "x = 1\n" + "and so on\n" * 40
    (change,) = pod_fields(server(cmd=before), server(cmd=before.replace("x = 1", "x = 2")))
    assert change.before is not None
    assert change.after is not None
    assert "x = 1" in change.before
    assert "x = 2" in change.after
    assert max(len(change.before), len(change.after)) <= VALUE_LIMIT


def test_the_sets_of_tasks_are_named_as_loading_names_them() -> None:
    assert own_set("server") == own_set("server")


# --- nothing is forgotten -------------------------------------------------------------------------

FULL = PodSpec(
    type="web",
    count=2,
    tasks=(
        SERVER.but(
            health_check=HEALTH,
            readiness_check=ReadinessCheck(cmd="up", interval=1, timeout=1),
            discovery=Discovery(prefix="web"),
            transport_encryption=(TransportEncryption(name="t", type="TLS"),),
        ),
    ),
    resource_sets=(
        ResourceSet(
            id="server-resource-set",
            cpus=0.5,
            ports=(PORT.but(ranges=(PortRange(begin=1, end=2),)),),
            volumes=(VolumeSpec(path="data", size=1, profiles=("fast",)),),
            limits=ResourceLimits(cpus=1.0),
        ),
    ),
    volumes=(VolumeSpec(path="pod", size=1),),
    networks=(NetworkSpec(name="host"),),
    rlimits=(RLimit(name="RLIMIT_NOFILE"),),
    secrets=(SecretRef(name="s", secret="a/b"),),
    host_volumes=(HostVolume(name="h", host_path="/h", container_path="h"),),
    external_volumes=(ExternalVolume(name="e", type="DOCKER", container_path="e"),),
)
NAMES = {"type", "name", "id", "path"}
"""What things are known by; another name is another thing."""

OTHERS: dict[str, object] = {
    "goal": Goal.ONCE, "resource_set": "elsewhere", "visibility": "EXTERNAL", "mode": "RO",
    "ipc_mode": "PRIVATE", "image": "i", "shm_size": 1, "soft": 1, "hard": 1, "limits": None,
    "health_check": None, "readiness_check": None, "discovery": None, "vip": None,
}  # fmt: skip


def another(name: str, value: object) -> object:
    """Another value for a field, of a kind that it may have."""
    if name in OTHERS:
        return OTHERS[name]
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() | None:
            return f"{value}x"
        case dict():
            return {"K": "v"}
        case tuple():
            return () if value else ("x",)
        case _:
            raise AssertionError(f"{name}: {value!r}")


def variants(value: Value, path: str = "") -> Iterator[tuple[str, Any]]:
    """The value with one field changed, for every field of it and of all that is in it."""
    for name in type(value).model_fields:
        if name in NAMES:
            continue
        own: Any = getattr(value, name)
        where = f"{path}.{kebab(name)}".removeprefix(".")
        yield where, value.but(**{name: another(name, own)})
        inner = cast(tuple[object, ...], own if isinstance(own, tuple) else (own,))
        for i, entry in enumerate(inner):
            if isinstance(entry, Value):
                for deep, changed in variants(entry, where):
                    put = (*inner[:i], changed, *inner[i + 1 :]) if own is inner else changed
                    yield deep, value.but(**{name: put})


HARMLESS = {"count", "placement", "allow-decommission", "resource-sets.ports.advertise"}


@pytest.mark.parametrize(
    ("path", "new"), [pytest.param(path, new, id=path) for path, new in variants(FULL)]
)
def test_every_field_is_compared(path: str, new: PodSpec) -> None:
    """A field that is added to a pod, a task or a resource set counts, unless it is decided that
    no running task is made from it."""
    assert pod_fields(FULL, new)
    assert differs(FULL, new) is (path not in HARMLESS)


@given(seed=st.integers())
def test_order_of_what_has_a_name_is_nothing(seed: int) -> None:
    random = Random(seed)

    def shuffled(value: Any) -> Any:
        if isinstance(value, Value):
            fields = {name: shuffled(getattr(value, name)) for name in type(value).model_fields}
            return value.but(**fields)
        if isinstance(value, tuple) and value:
            made = [shuffled(entry) for entry in cast(tuple[object, ...], value)]
            if all(isinstance(entry, Value) for entry in made) or "fast" in made:
                random.shuffle(made)
            return tuple(made)
        return cast(object, value)

    both = WIDE.but(tasks=(*WIDE.tasks, task("other")))
    assert pod_fields(both, shuffled(both)) == ()


WIDE = FULL.but(
    resource_sets=(
        FULL.resource_sets[0].but(
            ports=(
                PORT.but(ranges=(PortRange(begin=1), PortRange(end=5))),
                PortSpec(name="admin"),
                PortSpec(name="stats"),
            ),
            volumes=(
                VolumeSpec(path="data", size=1, profiles=("fast", "safe", "near")),
                VolumeSpec(path="log", size=1),
            ),
        ),
        ResourceSet(id="shared", cpus=1.0),
    ),
    secrets=tuple(SecretRef(name=name, secret=name) for name in "abc"),
)


# --- what becomes of what runs --------------------------------------------------------------------

ONCE = task("init", Goal.ONCE)
OLD = service(pod("hello", 2), pod("world", 2, ONCE, task()))
MORE_CPUS = service(pod("hello", 2, cpus=0.2), pod("world", 2, ONCE, task()))


def effects(*args: Any) -> dict[str, str]:
    return {
        instance.name: instance.effect.value
        for change in pod_changes(*args)
        for instance in change.instances
        if instance.effect is not PodEffect.NONE
    }


RUNS = by_name(
    *(record_of(OLD, "hello", i) for i in range(2)),
    *(record_of(OLD, "world", i) for i in range(2)),
    *(record_of(OLD, "world", i, TaskState.FINISHED, name="init") for i in range(2)),
)
CONFIGS = {"old": OLD, "mid": MORE_CPUS}


def test_first_installation() -> None:
    assert effects(None, OLD, {}, {}) == dict.fromkeys(
        ["hello-0", "hello-1", "world-0", "world-1"], "add"
    )


def test_what_is_deployed_again_changes_nothing() -> None:
    changes = pod_changes(OLD, OLD, RUNS, CONFIGS)
    assert [change.pod for change in changes] == ["hello", "world"]
    assert not any(change.fields for change in changes)
    assert effects(OLD, OLD, RUNS, CONFIGS) == {}
    assert effects(OLD, OLD, {}, CONFIGS) == {}  # never launched: still to come


def test_cpus_of_one_pod() -> None:
    hello, world = pod_changes(OLD, MORE_CPUS, RUNS, CONFIGS)
    assert [change.path for change in hello.fields] == ["tasks.server.cpus"]
    assert world.fields == ()
    assert effects(OLD, MORE_CPUS, RUNS, CONFIGS) == {"hello-0": "restart", "hello-1": "restart"}


def test_count() -> None:
    more, fewer = (service(pod("hello", n), *OLD.pods[1:]) for n in (3, 1))
    assert effects(OLD, more, RUNS, CONFIGS) == {"hello-2": "add"}
    assert effects(OLD, fewer, RUNS, CONFIGS) == {"hello-1": "remove"}
    assert effects(OLD, service(*OLD.pods[1:]), RUNS, CONFIGS) == {
        "hello-0": "remove", "hello-1": "remove",
    }  # fmt: skip


def test_each_instance_is_measured_by_the_configuration_that_it_runs() -> None:
    """Half way to more cpus, back to where it began: only what was moved is moved back."""
    half = {**RUNS, "hello-0-server": record_of(MORE_CPUS, "hello", 0, config_id="mid")}
    assert effects(MORE_CPUS, OLD, half, CONFIGS) == {"hello-0": "restart"}
    assert effects(MORE_CPUS, MORE_CPUS, half, CONFIGS) == {"hello-1": "restart"}


def test_what_runs_a_configuration_that_nobody_knows_is_restarted() -> None:
    assert effects(OLD, OLD, RUNS, {}) == dict.fromkeys(
        ["hello-0", "hello-1", "world-0", "world-1"], "restart"
    )


def _finished_alone(goal: Goal) -> dict[str, str]:
    old, new = (service(pod("job", 1, task("init", goal), cpus=n)) for n in (0.1, 0.2))
    runs = by_name(record_of(old, "job", 0, TaskState.FINISHED, name="init"))
    return effects(old, new, runs, {"old": old})


def test_a_finished_once_task_is_not_run_again_but_a_finish_task_is() -> None:
    assert _finished_alone(Goal.ONCE) == {}
    assert _finished_alone(Goal.FINISH) == {"job-0": "restart"}


def test_what_is_to_be_replaced_is_not_restarted() -> None:
    failed = {**RUNS, "hello-0-server": record_of(OLD, "hello", 0, permanently_failed=True)}
    assert effects(OLD, MORE_CPUS, failed, CONFIGS) == {"hello-1": "restart"}


def test_what_is_being_removed_and_what_was_scaled_back_up() -> None:
    one = service(pod("hello", 1), *OLD.pods[1:])
    assert effects(one, one, RUNS, CONFIGS) == {"hello-1": "remove"}
    assert effects(one, OLD, RUNS, CONFIGS) == {}  # it is still there
    assert effects(one, MORE_CPUS, RUNS, CONFIGS) == {"hello-0": "restart", "hello-1": "restart"}


def test_the_services_user_is_that_of_pods_without_one() -> None:
    old = service(pod("hello", 1), user="bob")
    new = service(pod("hello", 1, user="bob"), user="bob")
    assert pod_changes(old, new, {}, {})[0].fields == ()


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(OLD, {"hello": "new", "world": "new"}, id="same"),
        pytest.param(MORE_CPUS, {"hello": "old", "world": "new"}, id="cpus"),
        pytest.param(
            service(pod("hello", 9, placement="x"), OLD.pods[1]),
            {"hello": "new", "world": "new"},
            id="harmless",
        ),
        pytest.param(service(OLD.pods[1]), {"hello": "old", "world": "new"}, id="gone"),
    ],
)
def test_relabelled(new: ServiceSpec, expected: dict[str, str]) -> None:
    found = relabelled(RUNS, {"old": OLD, "new": new}, "new")
    assert {one.pod: one.config_id for one in found.values()} == expected
    assert {name: one.but(config_id="old") for name, one in found.items()} == RUNS


def test_relabelled_leaves_what_it_can_t_compare_and_takes_what_is_to_be_replaced() -> None:
    lost = by_name(
        record_of(OLD, "hello", 0, config_id="forgotten"),
        record_of(OLD, "hello", 1, config_id="forgotten", permanently_failed=True),
        record_of(OLD, "world", 0, config_id="new"),
    )
    found = relabelled(lost, {"new": OLD}, "new")
    assert [one.config_id for one in found.values()] == ["forgotten", "new", "new"]
