"""Service files that are refused (behaviour 12.4 to 12.8)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from properties import examples
from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.change_check import refusals
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import PLACEHOLDER
from temporal_plans.loading.services.service import load_service_text
from unit.loading.service_files import MINIMAL, load


def refused(text: str, env: Mapping[str, str] | None = None) -> tuple[Reason, ...]:
    with pytest.raises(SpecError) as raised:
        load(text, env)
    return raised.value.reasons


# --- the error catalogue of behaviour 12.8, and the rules of 12.4 to 12.7 ------------------------


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
    "duplicate-key": in_pod("count", "duplicate key", "count: 1", "count: 2"),
    "duplicate-set": in_set("a", "duplicate key", "a: {cpus: 1}\na: {cpus: 1}"),
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
        "t-resource-set", "already are a set of this name", "t-resource-set: {cpus: 1}"
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
        "ports.a.ranges.0",
        "begin is greater than end",
        "ports: {a: {port: 0, ranges: [{begin: 9, end: 1}]}}",
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
    "labels-empty": in_task("labels", "'' is not key:value", "cpus: 1", 'labels: " "'),
    "network-labels-empty": in_pod(
        "networks.n.labels", "'' is not key:value", 'networks: {n: {labels: ""}}'
    ),
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
        "duplicate key",
    ),
    "pod-twice": (MINIMAL + "  hello: {count: 1}", "pods.hello", "duplicate key"),
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
        "the pod has a volume",
    ),
}


@pytest.mark.parametrize("fault", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_refuses(fault: Fault) -> None:
    (problem,) = refused(document({"x": fault}))
    assert problem.field == fault.path
    assert fault.message in problem.problem
    assert problem.line is not None


@pytest.mark.parametrize(("text", "path", "message"), SHARED.values(), ids=SHARED.keys())
def test_refuses_what_concerns_the_whole(text: str, path: str, message: str) -> None:
    found = refused(text)
    assert [message in problem.problem for problem in found if problem.field == path] == [True]


def test_without_the_fault_the_catalogues_service_loads() -> None:
    assert load(document({"x": Fault("", "")})).pod("x").task("t").cmd == "run"


@examples(40)
@given(st.lists(st.sampled_from(sorted(CATALOGUE)), min_size=1, max_size=6))
def test_all_faults_of_a_file_are_reported_together(names: list[str]) -> None:
    faults = {f"pod{index}": CATALOGUE[name] for index, name in enumerate(names)}
    found = refused(document(faults))
    expected = {re.sub(r"^pods\.x", f"pods.{pod}", fault.path) for pod, fault in faults.items()}
    assert {problem.field for problem in found} == expected
    assert len(found) == len(names)


def test_faults_of_one_task_do_not_hide_each_other() -> None:
    text = MINIMAL.replace("cpus: 1", "cpus: 0, shm-size: 1, ipc-mode: SHARE_PARENT, colour: red")
    assert {problem.field.rpartition(".")[2] for problem in refused(text)} == {
        "cpus",
        "shm-size",
        "colour",
    }


def test_a_refused_task_still_counts_where_it_is_named() -> None:
    text = (
        MINIMAL.replace("{goal: RUNNING, cmd: run, cpus: 1, memory: 64}", "nonsense")
        + "plans: {deploy: {phases: {p: {pod: hello, steps: [{default: [[server]]}]}}}}"
    )
    assert [problem.field for problem in refused(text)] == ["pods.hello.tasks.server"]


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
    assert problem.problem == "must not be empty"


def test_what_a_backend_cannot_do_is_told_with_the_rest_in_the_order_of_the_file() -> None:
    text = MINIMAL.replace("count: 1", "count: -1\n    networks: {dcos: {}}").replace("64", "0")
    with pytest.raises(SpecError) as raised:
        load_service_text(text, {}, templates=str, backend=unsupported)
    assert [(problem.field, problem.line) for problem in raised.value.reasons] == [
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
        'pods.hello.tasks.server.mem: unknown key (found "3"); did you mean memory?'
    )
    with pytest.raises(SpecError) as raised:
        load(MINIMAL.replace("count: 1", "count: -1").replace("memory: 64", "memory: 0"))
    assert str(raised.value).splitlines() == [
        'svc.yml:5: pods.hello.count: must be 0 or more (found "-1")',
        'svc.yml:7: pods.hello.tasks.server.memory: must be more than 0 (found "0")',
    ]


def test_lines_are_left_out_when_the_template_moves_them() -> None:
    text = MINIMAL.replace("pods:", "{{#X}}\nweb-url: x\n{{/X}}\npods:").replace("64", "0")
    assert [problem.line for problem in refused(text)] == [None]


def test_syntax_errors_say_their_line_in_the_file_or_else_in_the_rendered_text() -> None:
    broken = MINIMAL + "plans: [\n"
    (problem,) = refused(broken)
    assert problem.line == broken.count("\n") + 1
    assert problem.problem.startswith("is not YAML: ")
    (problem,) = refused("{{#X}}\nleft: out\n{{/X}}\n" + broken)
    assert problem.line is None
    assert re.search(r"\(line \d+ of the rendered text\)$", problem.problem)


def test_a_missing_value_of_the_template_ends_the_loading() -> None:
    found = refused(MINIMAL.replace("count: 1", "count: {{COUNT}}\n    cout: {{MORE}}"))
    assert [(problem.field, problem.line) for problem in found] == [("COUNT", 5), ("MORE", 6)]


@pytest.mark.parametrize("name", ["a__b", "/a/" + "b" * 63])
def test_files_and_configurations_have_one_rule_of_names(name: str) -> None:
    with pytest.raises(SpecError) as of_file:
        load(MINIMAL.replace("svc", name))
    [of_configuration] = (
        reason
        for reason in refusals(None, load(MINIMAL).but(name=name), deployed_once=False)
        if reason.field == "name"
    )
    assert of_file.value.reasons == (of_configuration.but(line=2),)


def test_a_problem_may_have_the_words_of_a_placeholder() -> None:
    text = MINIMAL.replace("count: 1", "count: x") + (
        f"plans:\n  deploy:\n    phases:\n      p:\n        pod: {PLACEHOLDER}\n"
    )
    with pytest.raises(SpecError) as refused:
        load(text)
    assert [reason.value for reason in refused.value.reasons] == ["x", PLACEHOLDER]


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


@given(st.dictionaries(st.sampled_from(["name", "pods", "plans", "scheduler"]), _garbage))
def test_garbage_is_refused_with_the_writers_own_paths(garbage: dict[str, Any]) -> None:
    problems: tuple[Reason, ...] = ()
    try:
        load(yaml.safe_dump(garbage))
    except SpecError as error:
        problems = error.reasons
        assert problems, "refused without a reason"
    assert not [problem for problem in problems if PLACEHOLDER in f"{problem} {problem.value}"]


@pytest.mark.parametrize(
    ("fault", "fix"),
    [
        pytest.param(
            in_task("goal", "", "cpus: 1", "goal: FINISHED"), "write ONCE", id="renamed-goal"
        ),
        pytest.param(
            in_pod("container", "", "container: {image-name: x}"),
            "write its content into the pod itself: image, networks, rlimits and so on",
            id="container",
        ),
        pytest.param(in_pod("uri", "", "uri: x"), "did you mean uris?", id="nearest-name"),
    ],
)
def test_other_names_of_the_field_are_told(fault: Fault, fix: str) -> None:
    (problem,) = refused(document({"x": fault}))
    assert problem.fix == fix
