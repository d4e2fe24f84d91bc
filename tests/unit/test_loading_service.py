"""Service files: what each field becomes, and every refusal (reference 12)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from temporal_plans.domain.backend_support import unsupported
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.service import (
    ConfigTemplate,
    Discovery,
    ExternalVolume,
    Goal,
    HealthCheck,
    HostVolume,
    NetworkSpec,
    PortRange,
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
)
from temporal_plans.loading.env_file import parse_env_file
from temporal_plans.loading.form import STAND_IN
from temporal_plans.loading.service import load_service, load_service_text
from temporal_plans.loading.taskcfg import task_environment

MINIMAL = """
name: svc
pods:
  hello:
    count: 1
    tasks:
      server: {goal: RUNNING, cmd: run, cpus: 1, memory: 64}
"""

FULL = """
name: /team/svc
web-url: http://localhost
scheduler: {principal: me, zookeeper: "zk:2181", user: nobody}
pods:
  web:
    count: 3
    placement: [[hostname, MAX_PER, 2]]
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
      ext: {type: DOCKER, container-path: ext, driver-name: pxd, driver-options: "a=b;c=d"}
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


def load(text: str, env: Mapping[str, str] | None = None, **templates: str) -> ServiceSpec:
    files = {"app.conf": "{{TASK_NAME}}", **templates}
    return load_service_text(text, env or {}, templates=files.__getitem__)


def refused(text: str, env: Mapping[str, str] | None = None) -> tuple[Problem, ...]:
    with pytest.raises(SpecError) as raised:
        load(text, env)
    return raised.value.problems


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
    assert [problem.path for problem in unsupported(load(FULL))] == [
        "pods.web.image",
        "pods.web.networks.dcos",
        "pods.web.networks.mesos-bridge",
        "pods.web.pre-reserved-role",
        "pods.web.share-pid-namespace",
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


# --- the error catalogue of reference 12.8, and the rules of 12.4 to 12.7 ------------------------


@dataclass(frozen=True)
class Fault:
    """A fault of pod ``x``: lines that go into its task ``t``, the pod itself or its sets."""

    path: str
    message: str
    task: str = "cpus: 1"
    pod: str = "count: 1"
    sets: str = "unused: {cpus: 1}"


def document(faults: Mapping[str, Fault]) -> str:
    """A sound service but for the faults, each in a pod of its own."""
    lines = ["name: svc", "pods:"]
    for pod, fault in faults.items():
        lines += [f"  {pod}:", *_lines(fault.pod, 4)]
        lines += [] if "count:" in fault.pod else ["    count: 1"]
        lines += ["    resource-sets:", *_lines(fault.sets, 6)]
        lines += ["    tasks:", "      t:", *_lines(fault.task, 8)]
        lines += [] if "goal:" in fault.task else ["        goal: RUNNING"]
        lines += (
            [] if fault.task.count("cmd:") > fault.task.count("{cmd:") else ["        cmd: run"]
        )
    return "\n".join(lines)


def _lines(text: str, indent: int) -> list[str]:
    return [" " * indent + line for line in text.splitlines()]


def in_task(path: str, message: str, *lines: str) -> Fault:
    return Fault(f"pods.x.tasks.t.{path}".rstrip("."), message, task="\n".join(lines))


def in_pod(path: str, message: str, *lines: str) -> Fault:
    return Fault(f"pods.x.{path}", message, pod="\n".join(lines))


def in_set(path: str, message: str, line: str) -> Fault:
    return Fault(f"pods.x.resource-sets.{path}", message, sets=line)


HEALTH = "cmd: x, interval: 1, grace-period: 1, max-consecutive-failures: 1, delay: 0, timeout: 1"

CATALOGUE: dict[str, Fault] = {
    "unknown-key-in-task": in_task("memmory", "unknown key", "cpus: 1", "memmory: 3"),
    "unknown-key-in-pod": in_pod("cout", "unknown key", "cout: 3"),
    "duplicate-key": in_pod("count", "the key is there twice", "count: 1", "count: 2"),
    "duplicate-set": in_set("a", "the key is there twice", "a: {cpus: 1}\na: {cpus: 1}"),
    "count-negative": in_pod("count", "must be 0 or more", "count: -1"),
    "count-text": in_pod("count", "must be a whole number", "count: many"),
    "count-huge": in_pod("count", "must be 10000 or less", "count: 1000000000"),
    "cpus-zero": in_task("cpus", "must be more than 0", "cpus: 0"),
    "cpus-nan": in_task("cpus", "must be a finite number", "cpus: nan"),
    "gpus-negative": in_task("gpus", "must be more than 0", "gpus: -1"),
    "memory-zero": in_task("memory", "must be more than 0", "memory: 0"),
    "memory-fraction": in_task("memory", "must be a whole number", "memory: 0.5"),
    "disk-zero": in_task("volume.size", "must be more than 0", "volume: {path: v, size: 0}"),
    "goal-unknown": in_task("goal", "must be ", "cpus: 1", "goal: RUN"),
    "goal-finished": in_task("goal", "Unsupported GoalState FINISHED", "cpus: 1", "goal: FINISHED"),
    "cmd-empty": in_task("cmd", "must not be empty", "cpus: 1", 'cmd: " "'),
    "no-resources": in_task("", "has no resources", "essential: true"),
    "no-resources-in-set": in_set("a", "has no resources", "a: {}"),
    "unknown-set": in_task("resource-set", "no such resource set", "resource-set: unusd"),
    "own-set-taken": in_set(
        "t-resource-set", "has a set of this name", "t-resource-set: {cpus: 1}"
    ),
    "volume-and-volumes": in_task(
        "volumes",
        "both volume and volumes",
        "volume: {path: a, size: 1}",
        "volumes: {v: {path: b, size: 1}}",
    ),
    "pod-volume-and-volumes": in_pod(
        "volumes",
        "both volume and volumes",
        "volume: {path: a, size: 1}",
        "volumes: {v: {path: b, size: 1}}",
    ),
    "volume-path": in_task("volume.path", "one path element", "volume: {path: a/b, size: 1}"),
    "volume-path-first": in_task("volume.path", "one path element", "volume: {path: _a, size: 1}"),
    "volume-type": in_task("volume.type", "must be 'ROOT'", "volume: {path: a, type: X, size: 1}"),
    "volume-paths-equal": in_task(
        "volumes", "same path", "volumes: {a: {path: v, size: 1}, b: {path: v, size: 1}}"
    ),
    "volume-profile-of-root": in_task(
        "volume.profiles", "only MOUNT", "volume: {path: v, size: 1, profiles: [a]}"
    ),
    "volume-profile-twice": in_task(
        "volume.profiles", "twice", "volume: {path: v, type: MOUNT, size: 1, profiles: [a, a]}"
    ),
    "volume-profile-form": in_task(
        "volume.profiles.0", "1 to 128", "volume: {path: v, type: MOUNT, size: 1, profiles: [a/b]}"
    ),
    "port-range": in_task("ports.a.port", "must be 65535 or less", "ports: {a: {port: 65536}}"),
    "port-missing": in_task("ports.a.port", "is missing", "ports: {a: }"),
    "port-equal": in_task("ports", "same number", "ports: {a: {port: 5}, b: {port: 5}}"),
    "port-ranges-of-fixed": in_task(
        "ports.a.ranges", "only a dynamic port", "ports: {a: {port: 5, ranges: [{begin: 1}]}}"
    ),
    "port-range-backwards": in_task(
        "ports.a.ranges.0", "behind its end", "ports: {a: {port: 0, ranges: [{begin: 9, end: 1}]}}"
    ),
    "vip-prefix-of-other": in_task(
        "ports.b.vip.prefix",
        "name of another port",
        "ports: {a: {port: 1}, b: {port: 2, vip: {port: 80, prefix: a}}}",
    ),
    "vip-port": in_task(
        "ports.a.vip.port", "must be 1 or more", "ports: {a: {port: 0, vip: {port: 0}}}"
    ),
    "labels": in_task("labels", "'b' is not key:value", "cpus: 1", 'labels: "a:1,b"'),
    "labels-blank": in_task("labels", "'' is not key:value", "cpus: 1", 'labels: "a:1,"'),
    "network-labels": in_pod(
        "networks.n.labels", "is not key:value", 'networks: {n: {labels: "x"}}'
    ),
    "network-blank-key": in_pod(
        "networks.n.labels", "is not key:value", 'networks: {n: {labels: ":x"}}'
    ),
    "network-unmapped": in_pod(
        "networks.dcos",
        "does not map ports",
        "networks: {dcos: {host-ports: [1], container-ports: [1]}}",
    ),
    "network-lengths": in_pod(
        "networks.n.container-ports",
        "needs as many ports",
        "networks: {n: {host-ports: [1, 2], container-ports: [1]}}",
    ),
    "image-empty": in_pod("image", "must not be empty", 'image: ""'),
    "container-settings-legacy": in_pod("container", "unknown key", "container: {image-name: x}"),
    "rlimit-name": in_pod("rlimits.RLIMIT_NOFIL", "unknown rlimit", "rlimits: {RLIMIT_NOFIL: }"),
    "rlimit-half": in_pod(
        "rlimits.RLIMIT_CPU", "give both soft and hard", "rlimits: {RLIMIT_CPU: {soft: 1}}"
    ),
    "rlimit-order": in_pod(
        "rlimits.RLIMIT_CPU", "soft must not exceed", "rlimits: {RLIMIT_CPU: {soft: 2, hard: 1}}"
    ),
    "rlimit-unlimited-half": in_pod(
        "rlimits.RLIMIT_CPU", "must be both", "rlimits: {RLIMIT_CPU: {soft: 2, hard: -1}}"
    ),
    "rlimit-negative": in_pod(
        "rlimits.RLIMIT_CPU", "0 or more", "rlimits: {RLIMIT_CPU: {soft: -2, hard: -2}}"
    ),
    "template-missing": in_task(
        "configs.c.template",
        "the template can't be read",
        "cpus: 1",
        "configs: {c: {template: nowhere, dest: d}}",
    ),
    "template-outside": in_task(
        "configs.c.template",
        "inside the sandbox",
        "cpus: 1",
        "configs: {c: {template: ../x, dest: d}}",
    ),
    "config-dest-twice": in_task(
        "configs",
        "same dest",
        "cpus: 1",
        "configs: {a: {template: app.conf, dest: d}, b: {template: app.conf, dest: d}}",
    ),
    "config-dest-outside": in_task(
        "configs.c.dest",
        "inside the sandbox",
        "cpus: 1",
        "configs: {c: {template: app.conf, dest: a/../../b}}",
    ),
    "kill-grace-period": in_task(
        "kill-grace-period", "must be 3600 or less", "cpus: 1", "kill-grace-period: 3601"
    ),
    "health-check-incomplete": in_task(
        "health-check.timeout",
        "is missing",
        "cpus: 1",
        "health-check: {" + HEALTH.removesuffix(", timeout: 1") + "}",
    ),
    "health-check-cmd": in_task(
        "health-check.cmd",
        "must not be empty",
        "cpus: 1",
        "health-check: {" + HEALTH.replace("cmd: x", "cmd: ' '") + "}",
    ),
    "health-check-failures": in_task(
        "health-check.max-consecutive-failures",
        "must be 1 or more",
        "cpus: 1",
        "health-check: {" + HEALTH.replace("failures: 1", "failures: 0") + "}",
    ),
    "readiness-negative": in_task(
        "readiness-check.interval",
        "must be 0 or more",
        "cpus: 1",
        "readiness-check: {cmd: x, interval: -1, timeout: 1}",
    ),
    "discovery-visibility": in_task(
        "discovery.visibility", "must be 'CLUSTER'", "cpus: 1", "discovery: {visibility: ALL}"
    ),
    "encryption-type": in_task(
        "transport-encryption.0.type",
        "must be 'TLS'",
        "cpus: 1",
        "transport-encryption: [{name: a, type: SSL}]",
    ),
    "shm-size-with-parents": in_task(
        "shm-size", "SHARE_PARENT", "cpus: 1", "ipc-mode: SHARE_PARENT", "shm-size: 5"
    ),
    "pod-shares-parents": in_pod("ipc-mode", "must be 'PRIVATE'", "ipc-mode: SHARE_PARENT"),
    "seccomp-both": in_pod(
        "seccomp-profile-name",
        "either unconfined or",
        "seccomp-unconfined: true",
        "seccomp-profile-name: p",
    ),
    "limit-below-request": in_task(
        "resource-limits.cpus",
        "less than the requested amount, 1",
        "cpus: 1",
        "resource-limits: {cpus: 0.5}",
    ),
    "limit-form": in_task(
        "resource-limits.memory",
        "must be a number or unlimited",
        "memory: 1",
        "resource-limits: {memory: lots}",
    ),
    "secret-missing": in_pod("secrets.s.secret", "is missing", "secrets: {s: {env-key: A}}"),
    "secret-file": in_pod(
        "secrets.s.file", "relative path", "secrets: {s: {secret: a, file: /etc/x}}"
    ),
    "secret-files-equal": in_pod(
        "secrets", "same file", "secrets: {s: {secret: a, file: f}, t: {secret: b, file: f}}"
    ),
    "host-path-relative": in_pod(
        "host-volumes.h.host-path",
        "absolute path",
        "host-volumes: {h: {host-path: x, container-path: y}}",
    ),
    "container-path-absolute": in_pod(
        "host-volumes.h.container-path",
        "inside the sandbox",
        "host-volumes: {h: {host-path: /x, container-path: /y}}",
    ),
    "host-volume-mode": in_pod(
        "host-volumes.h.mode",
        "must be 'RW'",
        "host-volumes: {h: {host-path: /x, container-path: y, mode: W}}",
    ),
    "external-volume-type": in_pod(
        "external-volumes.e.type",
        "must be 'DOCKER'",
        "external-volumes: {e: {type: CSI, container-path: y}}",
    ),
    "external-volume-options": in_pod(
        "external-volumes.e.driver-options",
        "'b' is not key=value",
        'external-volumes: {e: {type: DOCKER, container-path: y, driver-options: "a=1;b"}}',
    ),
    "placement": in_pod("placement", "operator 'UNIQ' is unknown", "placement: 'hostname:UNIQ'"),
    "uri-empty": in_pod("uris.0", "is missing", "uris: [null]"),
}

SHARED: dict[str, tuple[str, str, str]] = {
    "name-missing": (
        "pods: {a: {count: 0, tasks: {t: {goal: ONCE, cmd: x, cpus: 1}}}}",
        "name",
        "is missing",
    ),
    "no-pods": ("name: s\npods: {}", "pods", "must not be empty"),
    "pods-missing": ("name: s", "pods", "is missing"),
    "tasks-empty": (
        "name: s\npods: {a: {count: 1, tasks: {}}}",
        "pods.a.tasks",
        "must not be empty",
    ),
    "task-twice": (
        MINIMAL + "      server: {goal: ONCE, cmd: x, cpus: 1}",
        "pods.hello.tasks.server",
        "the key is there twice",
    ),
    "pod-twice": (MINIMAL + "  hello: {count: 1}", "pods.hello", "the key is there twice"),
    "not-a-mapping": ("- a\n- b", "", "must be a mapping"),
    "empty": ("\n", "", "is empty"),
    "only-comments": ("# name: svc\n", "", "has only comments"),
    "pod-is-text": ("name: s\npods: {a: x}", "pods.a", "must be a mapping"),
    "service-name-underscores": (MINIMAL.replace("svc", "a__b"), "name", "must not contain __"),
    "service-name-long": (MINIMAL.replace("svc", "/a/" + "b" * 63), "name", "at most 63"),
    **{
        f"service-name-{key}": (MINIMAL.replace("svc", name), "name", "must be letters, digits")
        for key, name in {
            "gap": "/a//b",
            "slash-behind": "a/",
            "two-slashes-before": "//a",
            "space": "my service",
            "control-character": '"a\\tb"',
            "line-break": '"a\\n"',
            "colon": "a:b",
            "accent": "caf\u00e9",
            "flag": "-x",
            "parent-folder": "../a",
        }.items()
    },
    "pod-name": (MINIMAL.replace("hello:", "he/llo:"), "pods.he/llo", "must not contain '/'"),
    "task-name": (
        MINIMAL.replace("server:", "a/b:"),
        "pods.hello.tasks.a/b",
        "must not contain '/'",
    ),
    "plan-name": (
        MINIMAL + "plans: {deploy: {phases: {p: {pod: hello}}}, a/b: {phases: {p: {pod: hello}}}}",
        "plans.a/b",
        "must not contain '/'",
    ),
    "plan-key": (
        MINIMAL + "plans: {deploy: {strateg: serial, phases: {p: {pod: hello}}}}",
        "plans.deploy.strateg",
        "unknown key",
    ),
    "plan-pod": (
        MINIMAL + "plans: {deploy: {phases: {p: {pod: helo}}}}",
        "plans.deploy.phases.p.pod",
        "no such pod",
    ),
    "plan-task": (
        MINIMAL + "plans: {deploy: {phases: {p: {pod: hello, steps: [{0: [[srv]]}]}}}}",
        "plans.deploy.phases.p.steps.0.0.0",
        "no such task",
    ),
    "discovery-prefix-shared": (
        MINIMAL.replace("memory: 64", "memory: 64, discovery: {prefix: p}")
        + "  other: {count: 1, tasks: {t: {goal: ONCE, cmd: x, cpus: 1, discovery: {prefix: p}}}}",
        "pods.other.tasks.t.discovery.prefix",
        "cannot share DNS names",
    ),
    "advertised-twice": (
        MINIMAL.replace("memory: 64", "memory: 64, ports: {h: {port: 0, advertise: true}}")
        + "  other: {count: 1, tasks: {t: {goal: ONCE, cmd: x,"
        " ports: {h: {port: 0, advertise: true}}}}}",
        "pods.other.tasks.t.ports.h",
        "another advertised port",
    ),
    "pod-and-task-volume": (
        MINIMAL.replace("count: 1", "count: 1\n    volume: {path: v, size: 1}").replace(
            "memory: 64", "memory: 64, volume: {path: v, size: 1}"
        ),
        "pods.hello.tasks.server.volume.path",
        "the pod itself has a volume",
    ),
}


@pytest.mark.parametrize("fault", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_refuses(fault: Fault) -> None:
    (problem,) = refused(document({"x": fault}))
    assert problem.path == fault.path
    assert fault.message in problem.message
    assert problem.line is not None


@pytest.mark.parametrize(("text", "path", "message"), SHARED.values(), ids=SHARED.keys())
def test_refuses_what_concerns_the_whole(text: str, path: str, message: str) -> None:
    found = refused(text)
    assert [message in problem.message for problem in found if problem.path == path] == [True]


def test_without_the_fault_the_catalogues_service_loads() -> None:
    assert load(document({"x": Fault("", "")})).pod("x").task("t").cmd == "run"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(CATALOGUE)), min_size=1, max_size=6))
def test_all_faults_of_a_file_are_reported_together(names: list[str]) -> None:
    faults = {f"pod{index}": CATALOGUE[name] for index, name in enumerate(names)}
    found = refused(document(faults))
    expected = {re.sub(r"^pods\.x", f"pods.{pod}", fault.path) for pod, fault in faults.items()}
    assert {problem.path for problem in found} == expected
    assert len(found) == len(names)


def test_faults_of_one_task_do_not_hide_each_other() -> None:
    text = MINIMAL.replace("cpus: 1", "cpus: 0, shm-size: 1, ipc-mode: SHARE_PARENT, colour: red")
    assert {problem.path.rpartition(".")[2] for problem in refused(text)} == {
        "cpus",
        "shm-size",
        "colour",
    }


def test_a_refused_task_still_counts_where_it_is_named() -> None:
    text = (
        MINIMAL.replace("{goal: RUNNING, cmd: run, cpus: 1, memory: 64}", "nonsense")
        + "plans: {deploy: {phases: {p: {pod: hello, steps: [{default: [[server]]}]}}}}"
    )
    assert [problem.path for problem in refused(text)] == ["pods.hello.tasks.server"]


@pytest.mark.parametrize(
    "name", ["svc", "/a/b", "a/b", "a.b_c-D9", "_a", "a" * 63, "/" + "a" * 31 + "/" + "b" * 32]
)
def test_service_names(name: str) -> None:
    assert load(MINIMAL.replace("svc", name)).name == name


@pytest.mark.parametrize(
    ("refused_part", "plans"),
    [
        pytest.param("pods: {db: {count: 1, tasks: {}}}", "[[server]]", id="no-tasks"),
        pytest.param("pods: {}", "[[server]]", id="no-pods"),
    ],
)
def test_what_stands_in_for_refused_parts_is_never_told(refused_part: str, plans: str) -> None:
    phases = f"{{p: {{pod: db, steps: [{{default: {plans}}}]}}}}"
    text = f"name: svc\n{refused_part}\nplans: {{deploy: {{phases: {phases}}}}}\n"
    (problem,) = refused(text)
    assert problem.message == "must not be empty"


def test_what_a_backend_cannot_do_is_told_with_the_rest_in_the_order_of_the_file() -> None:
    text = MINIMAL.replace("count: 1", "count: -1\n    networks: {dcos: {}}").replace("64", "0")
    with pytest.raises(SpecError) as raised:
        load_service_text(text, {}, templates=str, backend=unsupported)
    assert [(problem.path, problem.line) for problem in raised.value.problems] == [
        ("pods.hello.count", 5),
        ("pods.hello.networks.dcos", 6),
        ("pods.hello.tasks.server.memory", 8),
    ]


def test_a_backend_refuses_a_file_that_is_sound_otherwise() -> None:
    text = MINIMAL.replace("count: 1", "count: 1\n    networks: {dcos: {}}")
    assert load(text).pod("hello").networks, "without a backend it loads"
    with pytest.raises(SpecError, match=r"svc\.yml:6: pods\.hello\.networks\.dcos: "):
        load_service_text(text, {}, templates=str, backend=unsupported)


def test_messages_name_field_value_and_fix() -> None:
    (problem,) = refused(MINIMAL.replace("memory: 64", "memory: 64, mem: 3"))
    assert str(problem) == (
        'pods.hello.tasks.server.mem: unknown key (found: "3"); did you mean memory?'
    )
    with pytest.raises(SpecError) as raised:
        load(MINIMAL.replace("count: 1", "count: -1").replace("memory: 64", "memory: 0"))
    assert str(raised.value).splitlines() == [
        'svc.yml:5: pods.hello.count: must be 0 or more (found: "-1")',
        'svc.yml:7: pods.hello.tasks.server.memory: must be more than 0 (found: "0")',
    ]


def test_lines_are_left_out_when_the_template_moves_them() -> None:
    text = MINIMAL.replace("pods:", "{{#X}}\nweb-url: x\n{{/X}}\npods:").replace("64", "0")
    assert [problem.line for problem in refused(text)] == [None]


def test_syntax_errors_say_their_line_in_the_file_or_else_in_the_rendered_text() -> None:
    broken = MINIMAL + "plans: [\n"
    (problem,) = refused(broken)
    assert problem.line == broken.count("\n") + 1
    assert problem.message.startswith("is not YAML: ")
    (problem,) = refused("{{#X}}\nleft: out\n{{/X}}\n" + broken)
    assert problem.line is None
    assert re.search(r"\(line \d+ of the rendered text\)$", problem.message)


def test_a_missing_value_of_the_template_ends_the_loading() -> None:
    found = refused(MINIMAL.replace("count: 1", "count: {{COUNT}}\n    cout: {{MORE}}"))
    assert [(problem.path, problem.line) for problem in found] == [("COUNT", 5), ("MORE", 6)]


_KEYS = (
    "name pods a count tasks goal cmd cpus plans phases pod steps volume volumes ports port 0"
    " default type strategy resource-sets resource_sets external-volumes transport-encryption"
)
_garbage = st.recursive(
    st.none() | st.text("ab-0", max_size=3) | st.sampled_from(["1", "RUNNING", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_KEYS.split()), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "pods", "plans", "scheduler"]), _garbage))
def test_garbage_is_refused_with_the_writers_own_paths(garbage: dict[str, Any]) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        load(yaml.safe_dump(garbage))
    except SpecError as error:
        problems = error.problems
        assert problems, "refused without a reason"
    assert not [problem for problem in problems if STAND_IN in f"{problem} {problem.value}"]


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
    assert [problem.line for problem in raised.value.problems] == [2, 3]


def test_env_file_refusals_tell_no_content_and_not_every_line() -> None:
    with pytest.raises(SpecError) as raised:
        parse_env_file("A=s3cret\n" + "PASSWORD: s3cret\n" * 9, source="x.env")
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["x.env:2", "x.env:3", "x.env:4", "x.env"]
    assert lines[-1] == "x.env: and 6 more"
    assert "s3cret" not in repr(raised.value.problems)
    assert "PASSWORD" not in repr(raised.value.problems)
