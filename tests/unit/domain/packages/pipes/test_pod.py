"""What the pod of a Pipe task may say, and what is applied."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.packages.pipes.names import PipeNames
from temporal_plans.domain.packages.pipes.pod import is_below, pipe_pod, pod_faults
from temporal_plans.domain.packages.tasks.pipe import PipeFile, PipeTask

Json = dict[str, Any]

FILE = PipeFile(file="/made/password", kind="Secret", key="password")
SHARED: Json = {"name": "made", "emptyDir": {}}
MOUNT: Json = {"name": "made", "mountPath": "/made"}
INIT: Json = {"name": "make", "image": "example/make:1", "volumeMounts": [MOUNT]}


def pod(**spec: Any) -> Json:
    whole = {"initContainers": [INIT], "volumes": [SHARED], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, "spec": whole}


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod(), id="one-init-container"),
        pytest.param(pod(restartPolicy="OnFailure"), id="on-failure"),
        pytest.param(pod(containers=[]), id="no-containers"),
        pytest.param(pod(volumes=[{"name": "other", "configMap": {}}, SHARED]), id="two-volumes"),
        pytest.param(
            pod(initContainers=[{**INIT, "volumeMounts": [{**MOUNT, "mountPath": "/made/"}]}]),
            id="mount-path-with-slash",
        ),
    ],
)
def test_a_pod_is_right(made: Json) -> None:
    assert list(pod_faults(made, [FILE])) == []


def mounted(*mounts: Json) -> Json:
    return pod(initContainers=[{**INIT, "volumeMounts": list(mounts)}])


@pytest.mark.parametrize(
    ("made", "field", "problem"),
    [
        pytest.param(
            {"apiVersion": "batch/v1", "kind": "Job"}, "kind", "is no v1 Pod", id="no-pod"
        ),
        pytest.param(
            pod(containers=[{"name": "main"}]), "spec.containers", "must be absent", id="container"
        ),
        pytest.param(
            pod(initContainers=[INIT, {**INIT, "name": "b"}]),
            "spec.initContainers",
            "has 2 entries instead of one",
            id="two-init-containers",
        ),
        pytest.param(
            pod(initContainers="make"),
            "spec.initContainers",
            "has 0 entries instead of one",
            id="init-containers-are-no-list",
        ),
        pytest.param(
            pod(restartPolicy="Always"),
            "spec.restartPolicy",
            "must be absent or OnFailure",
            id="restart-policy",
        ),
        pytest.param(
            pod(initContainers=[{**INIT, "restartPolicy": "Always"}]),
            "spec.initContainers.0.restartPolicy",
            "must be absent",
            id="init-container-that-never-ends",
        ),
        pytest.param(
            pod(initContainers=[{**INIT, "name": "waiter"}]),
            "spec.initContainers.0.name",
            "is the name of the container that is added",
            id="name-of-the-waiter",
        ),
        pytest.param(
            pod(volumes=[SHARED, {"name": "b", "emptyDir": {}}]),
            "spec.volumes",
            "has 2 emptyDir volumes instead of one",
            id="two-empty-dirs",
        ),
        pytest.param(
            pod(volumes=[]), "spec.volumes", "has 0 emptyDir volumes instead of one", id="no-volume"
        ),
        pytest.param(
            mounted({"name": "other", "mountPath": "/made"}),
            "spec.initContainers.0.volumeMounts",
            "has the volume made 0 times instead of once",
            id="not-mounted",
        ),
        pytest.param(
            mounted(MOUNT, {"name": "made", "mountPath": "/b"}),
            "spec.initContainers.0.volumeMounts",
            "has the volume made 2 times instead of once",
            id="mounted-twice",
        ),
        pytest.param(
            mounted({**MOUNT, "subPathExpr": "$(NAME)"}),
            "spec.initContainers.0.volumeMounts",
            "has a subPathExpr",
            id="sub-path-of-the-environment",
        ),
        pytest.param(
            mounted({"name": "made", "mountPath": "/else"}),
            "pipe.0.file",
            "is not below /else, where the volume is mounted, or hidden in it",
            id="file-outside-the-mount",
        ),
    ],
)
def test_a_pod_is_refused(made: Json, field: str, problem: str) -> None:
    (reason,) = pod_faults(made, [FILE])
    assert (reason.field, reason.problem) == (field, problem)


def test_all_faults_are_found_at_once() -> None:
    made = pod(containers=[{"name": "main"}], restartPolicy="Never", volumes=[], initContainers=[])
    assert [reason.field for reason in pod_faults(made, [FILE])] == [
        "spec.containers",
        "spec.restartPolicy",
        "spec.initContainers",
        "spec.volumes",
    ]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/made/a", True),
        ("/made/a/b", True),
        ("/made/a/.b", True),
        ("/made/../made/a", True),
        ("/made", False),
        ("/made/", False),
        ("/made2/a", False),
        ("/other/a", False),
        ("/", False),
        ("/made/..", False),
        ("/made/../a", False),
        ("/made/a/../../b", False),
        ("/made/.a", False),
        ("/made/..a", False),
        ("/made/a\0", False),
        ("made/a", False),
        ("", False),
    ],
)
def test_a_file_is_below_the_mount(path: str, wanted: bool) -> None:
    assert is_below("/made", path) is wanted


@pytest.mark.parametrize("name", ["a b", "é", "a" * 254, "a:b"])
def test_the_name_of_a_file_is_a_key(name: str) -> None:
    file = PipeFile(env_file=f"/made/in/{name}", kind="Secret", key="password")
    (reason,) = pod_faults(pod(), [file])
    assert (reason.field, reason.value) == ("pipe.0.envFile", name)
    assert reason.problem == "has a name that can't be a key"


def test_the_waiter_is_added() -> None:
    init = {**INIT, "securityContext": {"runAsUser": 7}}
    template = pod(initContainers=[init], serviceAccountName="maker")
    template["metadata"]["annotations"] = {"mine": "1"}
    assert pipe_pod(template, "a.pipepod", "registry.example/busybox:1") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a.pipepod",
            "annotations": {"mine": "1", "kudo.dev/pipepod": "true"},
        },
        "spec": {
            "initContainers": [init],
            "volumes": [SHARED],
            "serviceAccountName": "maker",
            "restartPolicy": "OnFailure",
            "containers": [
                {
                    "name": "waiter",
                    "image": "registry.example/busybox:1",
                    "command": ["/bin/sh", "-c", "sleep infinity"],
                    "volumeMounts": [{**MOUNT, "readOnly": True}],
                    "securityContext": {"runAsUser": 7},
                }
            ],
        },
    }


def test_the_image_of_the_waiter_has_a_default() -> None:
    assert pipe_pod(pod(), "a")["spec"]["containers"][0]["image"] == "busybox"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["spec", "metadata", "containers", "initContainers", "volumes", "emptyDir", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(spec=_JSON, metadata=_JSON)
def test_whatever_is_rendered_is_judged(spec: Any, metadata: Any) -> None:
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if not list(pod_faults(made, [FILE])):
        assert pipe_pod(made, "a")["metadata"]["name"] == "a"


def names(*files: PipeFile, **parts: str) -> PipeNames:
    task = PipeTask(name=parts.pop("task", "Gen_TLS"), pod="pod.yaml", pipe=files)
    whole = {"instance": "My-Inst", "plan": "deploy", "phase": "Phase 1", "step": "s-1", **parts}
    return PipeNames(task=task, **whole)


def test_names_are_letters_and_digits_with_dots() -> None:
    found = names(FILE)
    assert found.pod == "myinst.deploy.phase1.s1.gentls.pipepod"
    assert found.artefact("Cert_1") == "myinst.deploy.phase1.s1.gentls.cert1"
    assert list(found.faults()) == []


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param(names(FILE, step="--"), "can't name an object", id="nothing-is-left"),
        pytest.param(names(FILE, task="a" * 250), "can't name an object", id="too-long"),
        pytest.param(
            names(FILE, FILE.but(key="Pass-Word")),
            "the keys password and Pass-Word give one object, "
            "myinst.deploy.phase1.s1.gentls.password",
            id="one-name-twice",
        ),
    ],
)
def test_names_are_refused(found: PipeNames, problem: str) -> None:
    (reason,) = found.faults()
    assert (reason.field, reason.problem) == ("pipe", problem)


def test_a_secret_and_a_config_map_may_have_one_name() -> None:
    assert list(names(FILE, FILE.but(key="Pass-Word", kind="ConfigMap")).faults()) == []
