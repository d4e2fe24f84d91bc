"""Service files: what each field becomes, and every refusal (behaviour 12)."""

from pathlib import Path

import pytest

from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    Discovery,
    ExternalVolume,
    HealthCheck,
    HostVolume,
    NetworkSpec,
    PortSpec,
    ReadinessCheck,
    ResourceLimits,
    ResourceSet,
    RLimit,
    SecretRef,
    TransportEncryption,
    VipSpec,
    VolumeSpec,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.values.ports import PortRange
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.services.service import load_service, load_service_text
from temporal_plans.loading.services.taskcfg import task_environment
from temporal_plans.loading.text.env_file import parse_env_file
from unit.loading.service_files import MINIMAL, load

FULL = """
name: /team/svc
web-url: http://localhost
scheduler: {principal: me, zookeeper: "zk:2181", user: nobody, shell: bash}
pods:
  web:
    count: 3
    placement: [[hostname, MAX_PER, 2]]
    user: web
    image: alpine
    networks:
      dcos:
      mesos-bridge: {host-ports: [8080], container-ports: [80], labels: "a:b,c:d:e"}
    rlimits:
      RLIMIT_NOFILE: {soft: 10, hard: 20}
      RLIMIT_CORE: {soft: -1, hard: -1}
      RLIMIT_CPU:
    uris: [http://localhost/a.tgz]
    volume: {path: shared, size: 10}
    pre-reserved-role: special
    secrets:
      as-env: {secret: svc/a, env-key: A}
      as-file: {secret: svc/b, file: keys/b}
      by-default: {secret: svc/c}
    share-pid-namespace: true
    allow-decommission: true
    host-volumes:
      logs: {host-path: /var/log, container-path: logs, mode: RO}
    external-volumes:
      ext: {type: DOCKER, container-path: ext, driver-name: pxd, driver-options: "a=b;c=d;"}
    seccomp-profile-name: strict
    ipc-mode: PRIVATE
    shm-size: 64
    resource-sets:
      main:
        cpus: 0.5
        gpus: 1
        memory: 128
        resource-limits: {cpus: unlimited, memory: 256}
        volumes:
          a: {path: a, type: MOUNT, size: 5, profiles: [fast]}
          b: {path: b, size: 6}
        ports:
          http: {port: 0, env-key: PORT_HTTP, advertise: true, ranges: [{begin: 1}, {end: 9}]}
          admin: {port: 99, vip: {port: 80}}
          api: {port: 98, vip: {port: 81, prefix: public}}
    tasks:
      server:
        goal: running
        cmd: run
        resource-set: main
        essential: no
        env: {A: 1.20, B: true, C: , D: "x"}
        labels: "k:v, l:w:x"
        configs: {conf: {template: app.conf, dest: etc/app.conf}}
        health-check:
          {cmd: h, interval: 1, grace-period: 2, max-consecutive-failures: 3, delay: 4, timeout: 5}
        readiness-check: {cmd: r, interval: 0.5, timeout: 5}
        kill-grace-period: 30
        discovery: {prefix: disc, visibility: EXTERNAL}
        transport-encryption: [{name: n, type: TLS}]
        ipc-mode: PRIVATE
        shm-size: 32
      once: {goal: Once, cmd: o, memory: 32}
"""


def test_defaults() -> None:
    spec = load(MINIMAL)
    assert (spec.principal, spec.zookeeper, spec.user, spec.web_url, spec.plans) == (
        "svc-principal",
        "master.mesos:2181",
        "root",
        None,
        None,
    )
    pod = spec.pod("hello")
    assert (pod.count, pod.placement, pod.allow_decommission) == (1, "", False)
    task = pod.task("server")
    assert (task.goal, task.essential, task.env, task.kill_grace_period) == (
        Goal.RUNNING,
        True,
        {},
        0,
    )
    assert task.resource_set == "server-resource-set"
    assert pod.resource_sets == (ResourceSet(id="server-resource-set", cpus=1, memory=64),)


def test_every_field_arrives() -> None:
    spec = load(FULL)
    assert (spec.name, spec.web_url, spec.principal, spec.zookeeper, spec.user) == (
        "/team/svc",
        "http://localhost",
        "me",
        "zk:2181",
        "nobody",
    )
    pod = spec.pod("web")
    assert pod.placement == '[["hostname", "MAX_PER", "2"]]'
    assert (pod.user, pod.shell) == ("web", "bash")
    assert pod.image == "alpine"
    assert pod.networks == (
        NetworkSpec(name="dcos"),
        NetworkSpec(
            name="mesos-bridge",
            host_ports=(8080,),
            container_ports=(80,),
            labels={"a": "b", "c": "d:e"},
        ),
    )
    assert pod.rlimits == (
        RLimit(name="RLIMIT_NOFILE", soft=10, hard=20),
        RLimit(name="RLIMIT_CORE"),
        RLimit(name="RLIMIT_CPU"),
    )
    assert pod.uris == ("http://localhost/a.tgz",)
    assert pod.volumes == (VolumeSpec(path="shared", size=10),)
    assert pod.pre_reserved_role == "special"
    assert pod.secrets == (
        SecretRef(name="as-env", secret="svc/a", env_key="A"),
        SecretRef(name="as-file", secret="svc/b", file="keys/b"),
        SecretRef(name="by-default", secret="svc/c", file="svc/c"),
    )
    assert (pod.share_pid_namespace, pod.allow_decommission) == (True, True)
    assert pod.host_volumes == (
        HostVolume(name="logs", host_path="/var/log", container_path="logs", mode="RO"),
    )
    assert pod.external_volumes == (
        ExternalVolume(
            name="ext",
            type="DOCKER",
            container_path="ext",
            driver_name="pxd",
            driver_options={"a": "b", "c": "d"},
        ),
    )
    assert (pod.seccomp_unconfined, pod.seccomp_profile_name) == (False, "strict")
    assert (pod.ipc_mode, pod.shm_size) == ("PRIVATE", 64)


def test_every_field_of_resources_and_tasks_arrives() -> None:
    pod = load(FULL).pod("web")
    assert pod.resource_set("main") == ResourceSet(
        id="main",
        cpus=0.5,
        gpus=1,
        memory=128,
        limits=ResourceLimits(cpus="unlimited", memory=256),
        volumes=(
            VolumeSpec(path="a", type="MOUNT", size=5, profiles=("fast",)),
            VolumeSpec(path="b", size=6),
        ),
        ports=(
            PortSpec(
                name="http",
                env_key="PORT_HTTP",
                advertise=True,
                ranges=(PortRange(begin=1), PortRange(end=9)),
            ),
            PortSpec(name="admin", port=99, vip=VipSpec(port=80, prefix="admin")),
            PortSpec(name="api", port=98, vip=VipSpec(port=81, prefix="public")),
        ),
    )
    assert [resources.id for resources in pod.resource_sets] == ["main", "once-resource-set"]
    task = pod.task("server")
    assert (task.goal, task.resource_set, task.essential) == (Goal.RUNNING, "main", False)
    assert task.env == {"A": "1.20", "B": "true", "C": "", "D": "x"}
    assert task.labels == {"k": "v", "l": "w:x"}
    assert task.configs == (
        ConfigTemplate(name="conf", template="{{TASK_NAME}}", dest="etc/app.conf"),
    )
    assert task.health_check == HealthCheck(
        cmd="h", interval=1, grace_period=2, max_consecutive_failures=3, delay=4, timeout=5
    )
    assert task.readiness_check == ReadinessCheck(cmd="r", interval=0.5, delay=0, timeout=5)
    assert task.kill_grace_period == 30
    assert task.discovery == Discovery(prefix="disc", visibility="EXTERNAL")
    assert task.transport_encryption == (TransportEncryption(name="n", type="TLS"),)
    assert (task.ipc_mode, task.shm_size) == ("PRIVATE", 32)
    assert pod.task("once").goal is Goal.ONCE


def test_unsupported_names_every_field_that_agents_cannot_do() -> None:
    assert [problem.field for problem in unsupported(load(FULL))] == [
        "pods.web.image",
        "pods.web.networks.dcos",
        "pods.web.networks.mesos-bridge",
        "pods.web.pre-reserved-role",
        "pods.web.external-volumes.ext",
        "pods.web.seccomp-profile-name",
        "pods.web.ipc-mode",
        "pods.web.shm-size",
        "pods.web.tasks.server.transport-encryption",
        "pods.web.tasks.server.ipc-mode",
        "pods.web.tasks.server.shm-size",
    ]


def test_unsupported_takes_the_hosts_network() -> None:
    text = MINIMAL.replace("count: 1", "count: 1\n    networks: {host: }")
    assert unsupported(load(text)) == ()


# --- TASKCFG, files ------------------------------------------------------------------------------


def test_taskcfg_prefixes_are_greedy() -> None:
    env = {
        "TASKCFG_ALL_ONE": "1",
        "TASKCFG_A_TWO": "2",
        "TASKCFG_A_B_FIVE": "5",
        "TASKCFG_ALL_": "no name",
        "OTHER": "x",
    }
    assert task_environment("a", env) == {"ONE": "1", "TWO": "2", "B_FIVE": "5"}
    assert task_environment("a-b", env) == {"ONE": "1", "FIVE": "5"}
    assert task_environment("a.b", env) == task_environment("A_B", env)


def test_taskcfg_later_name_wins() -> None:
    assert task_environment("z", {"TASKCFG_Z_K": "pod", "TASKCFG_ALL_K": "all"}) == {"K": "pod"}
    assert task_environment("a", {"TASKCFG_A_K": "pod", "TASKCFG_ALL_K": "all"}) == {"K": "pod"}
    assert task_environment("aaa", {"TASKCFG_AAA_K": "pod", "TASKCFG_ALL_K": "all"}) == {"K": "all"}


def test_taskcfg_beats_the_files_env() -> None:
    text = MINIMAL.replace("memory: 64", "memory: 64, env: {A: file, B: file}")
    spec = load(text, {"TASKCFG_HELLO_A": "operator"})
    assert spec.pod("hello").task("server").env == {"A": "operator", "B": "file"}


def test_templates_are_read_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "svc.yml").write_text(FULL)
    (tmp_path / "app.conf").write_text("port={{PORT_HTTP}}")
    spec = load_service(tmp_path / "svc.yml", {})
    assert spec.pod("web").task("server").configs[0].template == "port={{PORT_HTTP}}"
    (tmp_path / "app.conf").unlink()
    with pytest.raises(SpecError, match="No such file or directory"):
        load_service(tmp_path / "svc.yml", {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"svc\.yml: No such file or directory"):
        load_service(tmp_path / "svc.yml", {})


def test_own_strategies_are_allowed_when_named() -> None:
    text = MINIMAL + "plans: {deploy: {strategy: mine, phases: {p: {pod: hello}}}}"
    with pytest.raises(SpecError, match="unknown strategy"):
        load(text)
    spec = load_service_text(text, {}, templates=str, strategies={"mine", "serial"})
    assert spec.plans is not None
    assert spec.plans["deploy"].strategy == "mine"


def test_env_files() -> None:
    text = "# comment\n\nA=1\nexport B = two words \nC='quoted'\nD=\nA=2\nE=a=b\n"
    assert parse_env_file(text) == {"A": "2", "B": "two words", "C": "quoted", "D": "", "E": "a=b"}


def test_env_file_refusals() -> None:
    with pytest.raises(SpecError) as raised:
        parse_env_file("A=1\nnonsense\n=x\n", source="x.env")
    assert [problem.line for problem in raised.value.reasons] == [2, 3]


def test_env_file_refusals_tell_no_content_and_not_every_line() -> None:
    with pytest.raises(SpecError) as raised:
        parse_env_file("A=s3cret\n" + "PASSWORD: s3cret\n" * 9, source="x.env")
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["x.env:2", "x.env:3", "x.env:4", "x.env"]
    assert lines[-1] == "x.env: and 6 more"
    assert "s3cret" not in repr(raised.value.reasons)
    assert "PASSWORD" not in repr(raised.value.reasons)
