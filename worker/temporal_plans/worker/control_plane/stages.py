"""What KWOK plays: how nodes, pods and claims go from stage to stage, and what exec runs.

The label ``tests.example/pod`` says what becomes of a pod: without it the pod runs and is ready at
once (a pod of a Job succeeds then); ``crash``, ``hang`` and ``fail`` are in ``PodFate``.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

LABEL = "tests.example/pod"


class PodFate(StrEnum):
    """Values of the label of pods that do not become ready."""

    CRASH = "crash"
    """Each container ends with 1 at once and is started again, once a second: CrashLoopBackOff."""
    HANG = "hang"
    """No container comes further than ContainerCreating."""
    FAIL = "fail"
    """Each container ends with 1 and the pod is Failed: a Job counts that."""


Manifest = Mapping[str, Any]

_ALIVE = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
_ORDINARY = {
    "key": f'.metadata.labels["{LABEL}"]',
    "operator": "NotIn",
    "values": [fate.value for fate in PodFate],
}
_NOT_READY = {
    "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
    "operator": "NotIn",
    "values": ["True"],
}

# Go templates of a status, in YAML. `_pod` fills in the words in capitals.
_NODE = """
phase: Running
conditions:
{{ $now := Now }}
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
daemonEndpoints:
  kubeletEndpoint:
    Port: {{ NodePort }}
allocatable: {cpu: 1k, memory: 1Ti, pods: 10k}
capacity: {cpu: 1k, memory: 1Ti, pods: 10k}
"""
_POD = """
{{ $now := Now }}
{{ $restarts := RESTARTS }}
phase: PHASE
startTime: {{ or .status.startTime $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
{{ $network := or .spec.hostNetwork false }}
{{ $of := .metadata }}
podIP: {{ PodIPWith .spec.nodeName $network $of.uid $of.name $of.namespace | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "READY", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "READY", lastTransitionTime: {{ $now | Quote }}}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "READY", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  restartCount: 0
  state:
    terminated: {exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: READY
  restartCount: {{ $restarts }}
  state:
    STATE
{{ end }}
"""
_CLAIM = """
phase: Bound
accessModes: {{ toJson .spec.accessModes }}
capacity: {{ toJson .spec.resources.requests }}
"""

_RUNNING = "running: {startedAt: {{ $now | Quote }}}"
_CREATING = "waiting: {reason: ContainerCreating}"
_BACK_OFF = "waiting: {reason: CrashLoopBackOff, message: back-off restarting failed container}"
_SUCCEEDED = "terminated: {exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }}}"
_FAILED = "terminated: {exitCode: 1, reason: Error, finishedAt: {{ $now | Quote }}}"
_ONE_MORE = "add 1 ( index .status.containerStatuses 0 ).restartCount"


def manifests(files: Path) -> list[Manifest]:
    """Return the configuration of KWOK; commands of exec run in the folder ``files``."""
    crashed = _pod("Running", ready=False, state=_BACK_OFF, restarts="1")
    again = _pod("Running", ready=False, state=_BACK_OFF, restarts=_ONE_MORE)
    back_off = {"type": "Warning", "reason": "BackOff", "message": "restarting failed container"}
    return [
        _stage("node-ready", "Node", [_NOT_READY], [_patched(_NODE)]),
        _stage(
            "pod-ready",
            "Pod",
            [_ALIVE, _ORDINARY, _in_phase("Pending")],
            [_patched(_pod("Running", ready=True, state=_RUNNING))],
        ),
        _stage(
            "pod-of-job-succeeds",
            "Pod",
            [_ALIVE, _ORDINARY, _in_phase("Running"), _owned_by("Job")],
            [_patched(_pod("Succeeded", ready=False, state=_SUCCEEDED))],
        ),
        _stage(
            "pod-crashes",
            "Pod",
            [_ALIVE, _fated(PodFate.CRASH), _in_phase("Pending")],
            [_patched(crashed), {"event": back_off}],
        ),
        _stage(
            "pod-crashes-again",
            "Pod",
            [_ALIVE, _fated(PodFate.CRASH), _in_phase("Running")],
            [_patched(again)],
            delay=1000,
        ),
        _stage(
            "pod-hangs",
            "Pod",
            [_ALIVE, _fated(PodFate.HANG), _in_phase("Pending"), _unset(".status.startTime")],
            [_patched(_pod("Pending", ready=False, state=_CREATING))],
        ),
        _stage(
            "pod-fails",
            "Pod",
            [_ALIVE, _fated(PodFate.FAIL), _in_phase("Pending")],
            [_patched(_pod("Failed", ready=False, state=_FAILED))],
        ),
        _stage(
            "pod-deleted",
            "Pod",
            [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}],
            [{"delete": True}],
        ),
        _stage(
            "claim-bound",
            "PersistentVolumeClaim",
            [_ALIVE, _in_phase("Pending")],
            [_patched(_CLAIM)],
        ),
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterExec",
            "metadata": {"name": "commands"},
            "spec": {"execs": [{"local": {"workDir": str(files)}}]},
        },
    ]


def write(manifests: Sequence[Manifest], file: Path) -> None:
    """Write objects as one YAML file of several documents."""
    file.write_text("\n---\n".join(json.dumps(manifest) for manifest in manifests))


def _stage(
    name: str,
    kind: str,
    expressions: Sequence[Manifest],
    steps: Sequence[Manifest],
    *,
    delay: int = 0,
) -> Manifest:
    """A stage that objects of a kind enter ``delay`` milliseconds after they match."""
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": list(expressions)},
        "steps": list(steps),
    }
    if delay:
        spec["delay"] = {"durationMilliseconds": delay}
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": spec,
    }


def _patched(template: str) -> Manifest:
    return {"patch": {"root": "status", "subresource": "status", "template": template}}


def _pod(phase: str, *, ready: bool, state: str, restarts: str = "0") -> str:
    filled = _POD.replace("PHASE", phase).replace("STATE", state).replace("RESTARTS", restarts)
    return filled.replace('"READY"', f'"{ready}"').replace("READY", str(ready).lower())


def _in_phase(phase: str) -> Manifest:
    return {"key": ".status.phase", "operator": "In", "values": [phase]}


def _fated(fate: PodFate) -> Manifest:
    return {"key": f'.metadata.labels["{LABEL}"]', "operator": "In", "values": [fate.value]}


def _owned_by(kind: str) -> Manifest:
    return {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": [kind]}


def _unset(key: str) -> Manifest:
    return {"key": key, "operator": "DoesNotExist"}
