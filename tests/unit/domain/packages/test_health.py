"""The health of objects, kind by kind."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.packages.health import Health, HealthState, health

Json = dict[str, Any]

HEALTHY = ""
"""In the place of a reason."""


def _object(kind: str, spec: Json, status: Json, *, generation: int = 2, **metadata: Any) -> Json:
    version, _, name = kind.rpartition("/")
    return {
        "apiVersion": version,
        "kind": name,
        "metadata": {"name": "it", "generation": generation, **metadata},
        "spec": spec,
        "status": status,
    }


def _condition(name: str, status: str, message: str = "") -> Json:
    return {"type": name, "status": status, "reason": "Reason", "message": message}


DEPLOYED: Json = {
    "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3
}  # fmt: skip
SET: Json = {
    "observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3,
    "updateRevision": "b", "currentRevision": "b",
}  # fmt: skip
ROLLING: Json = {"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}}
PARTITION: Json = {
    "replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
}  # fmt: skip
HALF_SET: Json = {**SET, "updatedReplicas": 1, "currentRevision": "a"}


def deployment(**status: Any) -> Json:
    return _object("apps/v1/Deployment", {"replicas": 3}, {**DEPLOYED, **status})


def conditions(kind: str, *found: Json, **status: Any) -> Json:
    return _object(kind, {}, {"conditions": list(found), **status})


def container(reason: str) -> Json:
    return {"name": "main", "state": {"waiting": {"reason": reason}}}


UNSEEN = "its controller has not seen the change yet"
DEADLINE = _condition("Progressing", "False", "exceeded its deadline")
QUOTA = _condition("ReplicaFailure", "True", "exceeded quota")

CASES = [
    pytest.param(deployment(), HEALTHY, id="deployment"),
    pytest.param(deployment(observedGeneration=1), UNSEEN, id="deployment-unseen"),
    pytest.param(
        deployment(updatedReplicas=2), "2 of 3 replicas are updated", id="deployment-updating"
    ),
    pytest.param(
        deployment(replicas=4), "1 replicas of an older revision are left", id="deployment-old-pods"
    ),
    pytest.param(
        deployment(availableReplicas=1), "1 of 3 replicas are available", id="deployment-starting"
    ),
    pytest.param(
        deployment(availableReplicas=1, conditions=[DEADLINE]),
        "1 of 3 replicas are available: exceeded its deadline",
        id="deployment-deadline",
    ),
    pytest.param(
        deployment(updatedReplicas=0, conditions=[QUOTA, DEADLINE]),
        "0 of 3 replicas are updated: exceeded quota",
        id="deployment-quota",
    ),
    pytest.param(
        _object("apps/v1/Deployment", {"replicas": 0}, {"observedGeneration": 2}),
        HEALTHY,
        id="deployment-of-none",
    ),
    pytest.param(_object("apps/v1beta1/Deployment", {}, {}), UNSEEN, id="deployment-old-version"),
    pytest.param(_object("apps/v1/StatefulSet", ROLLING, SET), HEALTHY, id="set"),
    pytest.param(_object("apps/v1/StatefulSet", ROLLING, {}), UNSEEN, id="set-new"),
    pytest.param(
        _object("apps/v1/StatefulSet", {}, SET, generation=3), UNSEEN, id="set-not-observed"
    ),
    pytest.param(
        _object("apps/v1/StatefulSet", ROLLING, {**SET, "readyReplicas": 2}),
        "2 of 3 replicas are ready",
        id="set-starting",
    ),
    pytest.param(
        _object("apps/v1/StatefulSet", ROLLING, HALF_SET),
        "1 of 3 replicas are updated",
        id="set-updating",
    ),
    pytest.param(_object("apps/v1/StatefulSet", PARTITION, HALF_SET), HEALTHY, id="set-partition"),
    pytest.param(
        _object("apps/v1/StatefulSet", PARTITION, {**HALF_SET, "updatedReplicas": 0}),
        "0 of 1 replicas above the partition are updated",
        id="set-partition-updating",
    ),
    pytest.param(
        _object(
            "apps/v1/StatefulSet", {"replicas": 3, "updateStrategy": {"type": "OnDelete"}}, HALF_SET
        ),
        HEALTHY,
        id="set-on-delete",
    ),
    pytest.param(
        conditions("batch/v1/Job", _condition("Complete", "True"), succeeded=4),
        HEALTHY,
        id="job-of-many",
    ),
    pytest.param(
        _object("batch/v1/Job", {"completions": 4}, {"succeeded": 1, "failed": 2}),
        "1 of 4 pods succeeded: 2 failed",
        id="job-running",
    ),
    pytest.param(
        _object("v1/Pod", {}, {"phase": "Running", "conditions": [_condition("Ready", "True")]}),
        HEALTHY,
        id="pod",
    ),
    pytest.param(_object("v1/Pod", {}, {"phase": "Succeeded"}), HEALTHY, id="pod-succeeded"),
    pytest.param(
        _object("v1/Pod", {}, {"phase": "Running", "containerStatuses": [container("BackOff")]}),
        "the pod is Running and not ready: main: BackOff",
        id="pod-crashing",
    ),
    pytest.param(_object("v1/Pod", {}, {}), "the pod is Pending and not ready", id="pod-new"),
    pytest.param(_object("v1/Namespace", {}, {"phase": "Active"}), HEALTHY, id="namespace"),
    pytest.param(
        _object("v1/Namespace", {}, {"phase": "Terminating"}),
        "the namespace is Terminating",
        id="namespace-ending",
    ),
    pytest.param(
        conditions(
            "apiextensions.k8s.io/v1/CustomResourceDefinition", _condition("Established", "True")
        ),
        HEALTHY,
        id="definition",
    ),
    pytest.param(
        conditions(
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            _condition("NamesAccepted", "False", "plural is taken"),
        ),
        "the definition is not established: plural is taken",
        id="definition-name-taken",
    ),
    pytest.param(_object("v1/Service", {"clusterIP": "10.0.0.1"}, {}), HEALTHY, id="service"),
    pytest.param(_object("v1/Service", {"clusterIP": "None"}, {}), HEALTHY, id="service-headless"),
    pytest.param(
        _object("v1/Service", {"type": "ExternalName"}, {}), HEALTHY, id="service-external-name"
    ),
    pytest.param(
        _object("v1/Service", {"type": "ClusterIP"}, {}),
        "the Service has no cluster IP",
        id="service-new",
    ),
    pytest.param(
        _object("v1/Service", {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, {}),
        "the load balancer has no address",
        id="service-balancing",
    ),
    pytest.param(
        _object(
            "v1/Service",
            {"type": "LoadBalancer", "clusterIP": "10.0.0.1"},
            {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        ),
        HEALTHY,
        id="service-balanced",
    ),
    pytest.param(_object("v1/ConfigMap", {}, {}), HEALTHY, id="config-map"),
    pytest.param(conditions("a.example/v1/Thing"), HEALTHY, id="unknown-kind"),
    pytest.param(
        conditions("a.example/v1/Thing", _condition("Ready", "True")), HEALTHY, id="unknown-ready"
    ),
    pytest.param(
        conditions("a.example/v1/Thing", _condition("Ready", "False", "no disk")),
        "Ready is False: no disk",
        id="unknown-not-ready",
    ),
    pytest.param(
        conditions("a.example/v1/Thing", _condition("Reconciling", "True")),
        "Reconciling is True: Reason",
        id="unknown-reconciling",
    ),
    pytest.param(
        conditions("a.example/v1/Thing", _condition("Ready", "True"), observedGeneration=1),
        UNSEEN,
        id="unknown-unseen",
    ),
    pytest.param(
        _object("v1/ConfigMap", {}, {}, deletionTimestamp="2026-01-01T00:00:00Z"),
        "it is being deleted",
        id="being-deleted",
    ),
]


@pytest.mark.parametrize(("live", "reason"), CASES)
def test_an_object_is_healthy_or_says_why_not(live: Json, reason: str) -> None:
    state = HealthState.UNHEALTHY if reason else HealthState.HEALTHY
    assert health(live) == Health(state=state, reason=reason)


@pytest.mark.parametrize(
    ("live", "reason"),
    [
        pytest.param(
            conditions("batch/v1/Job", _condition("Failed", "True", "reached its limit")),
            "the Job failed: reached its limit",
            id="job",
        ),
        pytest.param(
            _object("v1/Pod", {}, {"phase": "Failed", "message": "evicted"}),
            "the pod failed: evicted",
            id="pod",
        ),
        pytest.param(
            conditions("a.example/v1/Thing", _condition("Stalled", "True", "bad spec")),
            "it is stalled: bad spec",
            id="unknown-kind",
        ),
    ],
)
def test_some_objects_fail(live: Json, reason: str) -> None:
    assert health(live) == Health(state=HealthState.FAILED, reason=reason)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["conditions", "type", "replicas", "x"]), inner, max_size=2
        )
    ),
    max_leaves=6,
)
KINDS = (
    "apps/v1/Deployment", "apps/v1/StatefulSet", "batch/v1/Job", "v1/Pod", "v1/Namespace",
    "v1/Service", "apiextensions.k8s.io/v1/CustomResourceDefinition", "v1/ConfigMap",
)  # fmt: skip


@given(kind=st.sampled_from(KINDS), spec=JSON, status=JSON, metadata=JSON)
def test_an_object_of_any_form_has_a_health(
    kind: str, spec: Any, status: Any, metadata: Any
) -> None:
    live = {**_object(kind, {}, {}), "spec": spec, "status": status, "metadata": metadata}
    assert health(live).state in HealthState
