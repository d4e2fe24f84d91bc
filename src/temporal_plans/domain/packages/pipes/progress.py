"""How far the pod of a Pipe task is."""

from enum import StrEnum

from temporal_plans.domain.packages.health import HealthState, health
from temporal_plans.domain.packages.manifests import Manifest, entries, number, part, text
from temporal_plans.domain.values.model import Value

RESTARTS_LIMIT = 5
"""Restarts of a container after which it has failed: the kubelet has waited five minutes then."""

_DEADLINE = "DeadlineExceeded"


class PodState(StrEnum):
    """``READY``: its files are made. ``WAITING``: not yet. ``LOST``: another pod may succeed.
    ``FAILED``: another would fail as well."""

    READY = "ready"
    WAITING = "waiting"
    LOST = "lost"
    FAILED = "failed"


class PodProgress(Value):
    """The state of a pod; ``reason`` is a sentence for people, empty when it is ready."""

    state: PodState
    reason: str = ""


def pod_progress(live: Manifest) -> PodProgress:
    """Return how far a pod is, as the API server returned it."""
    if text(part(live, "metadata"), "deletionTimestamp"):
        return PodProgress(state=PodState.LOST, reason="the pod is being deleted")
    status = part(live, "status")
    if text(status, "phase") in ("Failed", "Succeeded"):
        return _ended(status)
    found = health(live)
    if found.state is HealthState.HEALTHY:
        return PodProgress(state=PodState.READY)
    for container in _containers(status):
        restarts = number(container, "restartCount")
        if restarts >= RESTARTS_LIMIT:
            reason = f"the container {text(container, 'name')} failed {restarts} times"
            return PodProgress(state=PodState.FAILED, reason=f"{reason}{_exit(container)}")
    return PodProgress(state=PodState.WAITING, reason=found.reason)


def made_by(live: Manifest) -> tuple[str, str]:
    """Return what identifies the run that made the files of a pod: another one after the pod was
    replaced, or its init container executed again."""
    nothing: Manifest = {}
    init = next(iter(entries(part(live, "status"), "initContainerStatuses")), nothing)
    ended = part(init, "state", "terminated")
    run = f"{number(init, 'restartCount')} {text(init, 'containerID')} {text(ended, 'finishedAt')}"
    return text(part(live, "metadata"), "uid"), run


def _ended(status: Manifest) -> PodProgress:
    """Only evictions, lost nodes and deadlines end a pod whose containers are restarted."""
    why = text(status, "reason") or f"it {text(status, 'phase').lower()}"
    message = f"{why}: {text(status, 'message')}" if text(status, "message") else why
    state = PodState.FAILED if text(status, "reason") == _DEADLINE else PodState.LOST
    return PodProgress(state=state, reason=f"the pod ended: {message}")


def _containers(status: Manifest) -> list[Manifest]:
    return [*entries(status, "initContainerStatuses"), *entries(status, "containerStatuses")]


def _exit(container: Manifest) -> str:
    for state in ("lastState", "state"):
        ended = part(container, state, "terminated")
        if "exitCode" in ended:
            return f", at last with exit code {number(ended, 'exitCode')}"
    return ""
