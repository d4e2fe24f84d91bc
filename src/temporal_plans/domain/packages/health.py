"""Whether an object of a Kubernetes cluster is as it should be, judged by the object alone.

A step that applies objects is done when all of them are healthy. ``health`` is given an object as
the API server returned it, a plain dict. It never raises: what has another form than Kubernetes
gives it is not healthy yet.

Kinds in ``_KINDS`` have rules of their own. All other kinds, and resources of CRDs, are judged by
the conditions that controllers agree on (Ready, Reconciling, Stalled); without them they are
healthy once they exist, for most kinds (ConfigMap, Role, …) have nothing to wait for.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, cast

from temporal_plans.domain.values.model import Value


class HealthState(StrEnum):
    """What a step does about an object."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    """Not yet, or no longer: the step looks again."""
    FAILED = "failed"
    """It will not become healthy by itself: the step reads ERROR."""


class Health(Value):
    """The health of an object; ``reason`` is a sentence for people, empty when it is healthy."""

    state: HealthState
    reason: str = ""


_HEALTHY = Health(state=HealthState.HEALTHY)

Object = Mapping[str, Any]
_Judge = Callable[[Object], Health]


def health(live: Object) -> Health:
    """Return the health of an object as the API server returned it.

    An object that is being deleted is unhealthy, whatever its kind.
    """
    if _text(_at(live, "metadata"), "deletionTimestamp"):
        return _unhealthy("it is being deleted")
    group, _, _ = _text(live, "apiVersion").rpartition("/")
    return _KINDS.get((group, _text(live, "kind")), _by_conditions)(live)


def _deployment(live: Object) -> Health:
    """Updated, available, and without pods of an older revision."""
    if unseen := _unseen(live):
        return unseen
    status = _at(live, "status")
    wanted, updated = _wanted_replicas(live), _number(status, "updatedReplicas")
    total, available = _number(status, "replicas"), _number(status, "availableReplicas")
    if updated < wanted:
        counted = f"{updated} of {wanted} replicas are updated"
    elif total > updated:
        counted = f"{total - updated} replicas of an older revision are left"
    elif available < updated:
        counted = f"{available} of {updated} replicas are available"
    else:
        return _HEALTHY
    return _unhealthy(counted, _deployment_trouble(live))


def _deployment_trouble(live: Object) -> str:
    """A rollout that exceeded its deadline goes on, and may succeed: it is no failure."""
    if (refused := _condition(live, "ReplicaFailure")) and _is(refused, "True"):
        return _text(refused, "message")
    if (progress := _condition(live, "Progressing")) and _is(progress, "False"):
        return _text(progress, "message")
    return ""


def _stateful_set(live: Object) -> Health:
    """Ready, and updated as far as its partition says. With OnDelete pods are updated when people
    delete them, so their revision is not considered."""
    if unseen := _unseen(live):
        return unseen
    strategy, status = _at(live, "spec", "updateStrategy"), _at(live, "status")
    wanted, ready = _wanted_replicas(live), _number(status, "readyReplicas")
    if ready < wanted:
        return _unhealthy(f"{ready} of {wanted} replicas are ready")
    if _text(strategy, "type") == "OnDelete":
        return _HEALTHY
    if partition := _number(_at(strategy, "rollingUpdate"), "partition"):
        updated, due = _number(status, "updatedReplicas"), wanted - partition
        if updated < due:
            return _unhealthy(f"{updated} of {due} replicas above the partition are updated")
        return _HEALTHY
    if _text(status, "updateRevision") != _text(status, "currentRevision"):
        updated = _number(status, "updatedReplicas")
        return _unhealthy(f"{updated} of {wanted} replicas are updated")
    return _HEALTHY


def _job(live: Object) -> Health:
    """By its conditions: one completion or many."""
    if (failed := _condition(live, "Failed")) and _is(failed, "True"):
        return _failed(_explained("the Job failed", failed))
    if (complete := _condition(live, "Complete")) and _is(complete, "True"):
        return _HEALTHY
    status = _at(live, "status")
    wanted = _number(_at(live, "spec"), "completions", default=1)
    pods = f"{_number(status, 'succeeded')} of {wanted} pods succeeded"
    lost = _number(status, "failed")
    return _unhealthy(pods, f"{lost} failed" if lost else "")


def _pod(live: Object) -> Health:
    phase = _text(_at(live, "status"), "phase")
    if phase == "Succeeded":
        return _HEALTHY
    if phase == "Failed":
        return _failed(_joined("the pod failed", _text(_at(live, "status"), "message")))
    ready = _condition(live, "Ready")
    if phase == "Running" and _is(ready, "True"):
        return _HEALTHY
    return _unhealthy(f"the pod is {phase or 'Pending'} and not ready", _waiting(live))


def _waiting(live: Object) -> str:
    """Why containers of a pod do not run: ``main: CrashLoopBackOff``."""
    status = _at(live, "status")
    containers = [*_list(status, "initContainerStatuses"), *_list(status, "containerStatuses")]
    reasons = {
        _text(one, "name"): _text(_at(one, "state", "waiting"), "reason") for one in containers
    }
    return ", ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)


def _namespace(live: Object) -> Health:
    phase = _text(_at(live, "status"), "phase")
    return _HEALTHY if phase == "Active" else _unhealthy(f"the namespace is {phase or 'new'}")


def _definition(live: Object) -> Health:
    """A CustomResourceDefinition whose names another one has is not established."""
    if _is(_condition(live, "Established"), "True"):
        return _HEALTHY
    names = _condition(live, "NamesAccepted")
    return _unhealthy(
        "the definition is not established", _text(names, "message") if _is(names, "False") else ""
    )


def _service(live: Object) -> Health:
    spec = _at(live, "spec")
    kind = _text(spec, "type")
    if kind == "ExternalName":
        return _HEALTHY
    if not _text(spec, "clusterIP"):
        return _unhealthy("the Service has no cluster IP")
    balanced = _list(spec, "externalIPs") or _list(_at(live, "status", "loadBalancer"), "ingress")
    if kind == "LoadBalancer" and not balanced:
        return _unhealthy("the load balancer has no address")
    return _HEALTHY


def _by_conditions(live: Object) -> Health:
    if unseen := _unseen(live, must_observe=False):
        return unseen
    stalled = _condition(live, "Stalled")
    if _is(stalled, "True"):
        return _failed(_explained("it is stalled", stalled))
    for condition, good in (("Reconciling", "False"), ("Ready", "True")):
        found = _condition(live, condition)
        if found and not _is(found, good):
            return _unhealthy(_explained(f"{condition} is {_text(found, 'status')}", found))
    return _HEALTHY


_KINDS: Mapping[tuple[str, str], _Judge] = {
    ("apps", "Deployment"): _deployment,
    ("extensions", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
"""The rule of a kind, by its group (any version) and name."""


def _unseen(live: Object, *, must_observe: bool = True) -> Health | None:
    """A status that is about an earlier generation says nothing about this one. A controller that
    does not say which generation it saw is believed unless ``must_observe``."""
    status = _at(live, "status")
    if "observedGeneration" not in status and not must_observe:
        return None
    seen, wanted = (
        _number(status, "observedGeneration"),
        _number(_at(live, "metadata"), "generation"),
    )
    if seen and seen >= wanted:
        return None
    return _unhealthy("its controller has not seen the change yet")


def _wanted_replicas(live: Object) -> int:
    return _number(_at(live, "spec"), "replicas", default=1)


def _condition(live: Object, name: str) -> Object:
    """The condition of that type; an empty one where there is none."""
    conditions = _list(_at(live, "status"), "conditions")
    found = [one for one in conditions if _text(one, "type") == name]
    return found[0] if found else {}


def _is(condition: Object, status: str) -> bool:
    return _text(condition, "status") == status


def _explained(what: str, condition: Object) -> str:
    return _joined(what, _text(condition, "message") or _text(condition, "reason"))


def _joined(what: str, why: str) -> str:
    return f"{what}: {why}" if why else what


def _unhealthy(what: str, why: str = "") -> Health:
    return Health(state=HealthState.UNHEALTHY, reason=_joined(what, why))


def _failed(reason: str) -> Health:
    return Health(state=HealthState.FAILED, reason=reason)


# Objects come from outside: a field of another type is as good as none.


def _at(live: Object, *path: str) -> Object:
    for name in path:
        inner: Any = live.get(name)
        live = cast(Object, inner) if isinstance(inner, Mapping) else {}
    return live


def _text(live: Object, name: str) -> str:
    found = live.get(name)
    return found if isinstance(found, str) else ""


def _number(live: Object, name: str, default: int = 0) -> int:
    found = live.get(name)
    return found if isinstance(found, int) else default


def _list(live: Object, name: str) -> list[Object]:
    found = live.get(name)
    inner: list[Any] = cast(Any, found) if isinstance(found, list) else []
    return [cast(Object, one) for one in inner if isinstance(one, Mapping)]
