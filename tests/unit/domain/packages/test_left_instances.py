"""What a controller left in a cluster, as it is read."""

from datetime import UTC, datetime
from typing import Any

import pytest

from temporal_plans.domain.packages.dependencies import (
    HASH_KEY,
    KeptHash,
    dependencies_hash,
    with_hash,
)
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.left_instances import (
    applied_by_controller,
    left_instance,
    template_differences,
    written_hash,
)
from temporal_plans.domain.plans.status import Status


def test_an_instance() -> None:
    found = left_instance(
        {
            "metadata": {"name": "store", "namespace": "data", "deletionTimestamp": "now"},
            "spec": {"operatorVersion": {"name": "shop-1"}, "parameters": {"SIZE": "3"}},
            "status": {
                "planStatus": {
                    "deploy": {
                        "status": "COMPLETE",
                        "uid": "u",
                        "lastUpdatedTimestamp": "2021-07-01T10:00:00Z",
                    },
                    "backup": {"status": "IN_PROGRESS", "lastUpdatedTimestamp": None},
                    "repair": {"status": "FATAL_ERROR"},
                    "update": {"status": "NEVER_RUN"},
                }
            },
        }
    )
    assert (found.name, found.version, found.version_namespace) == ("store", "shop-1", "data")
    assert (found.given, found.deleting) == ({"SIZE": "3"}, True)
    runs = {run.plan: (run.ours, run.is_over) for run in found.runs}
    assert runs == {
        "deploy": (Status.COMPLETE, True),
        "backup": (Status.ERROR, False),
        "repair": (Status.ERROR, True),
    }
    assert found.runs[0].at == datetime(2021, 7, 1, 10, tzinfo=UTC)


def test_an_instance_without_anything() -> None:
    found = left_instance({})
    assert (found.name, found.given, found.runs) == ("", {}, ())


def live(namespace: str = "data", owner: str = "", *, annotated: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "x", "namespace": namespace}
    if owner:
        kind, _, name = owner.partition("/")
        version = "kudo.dev/v1beta1" if kind == "Instance" else "apps/v1"
        reference = {"apiVersion": version, "kind": kind, "name": name, "controller": True}
        metadata["ownerReferences"] = [reference]
    if annotated:
        metadata["annotations"] = {"kudo.dev/last-applied-configuration": "{}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (live(owner="Instance/store"), True),
        (live(owner="Instance/other"), False),
        (live(owner="ReplicaSet/store"), False),
        (live(owner="ReplicaSet/store", annotated=True), False),
        (live(), False),
        (live(annotated=True), True),
        (live("", annotated=True), True),
        (live("elsewhere", owner="Instance/store"), False),
        ({**live(annotated=True), "apiVersion": "kudo.dev/v1beta1"}, False),
    ],
)
def test_what_the_controller_applied(found: dict[str, Any], expected: bool) -> None:
    assert applied_by_controller(found, "store", "data") is expected


def workload(image: str = "a:1", hash: str = "", *, reads: bool = True) -> dict[str, Any]:
    volumes = [{"name": "config", "configMap": {"name": "config"}}] if reads else []
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "data"},
        "spec": {
            "template": {
                "metadata": {"annotations": {HASH_KEY: hash} if hash else {}},
                "spec": {"containers": [{"name": "main", "image": image}], "volumes": volumes},
            }
        },
    }


def test_the_hash_of_the_former_controller_stays_while_ours_is_the_same() -> None:
    ref = ObjectRef.of(workload())
    computed = dependencies_hash([None])
    kept = KeptHash(ref=ref, computed=computed, live="theirs")
    path = with_hash(workload(), {}, [kept])["spec"]["template"]["metadata"]["annotations"]
    assert path == {HASH_KEY: "theirs"}
    changed = {("", "ConfigMap", "data", "config"): {"metadata": {"name": "config"}}}
    other = with_hash(workload(), changed, [kept])["spec"]["template"]["metadata"]["annotations"]
    assert other[HASH_KEY] not in ("theirs", computed)
    none = with_hash(workload(), {}, [kept.but(live="")])
    assert none["spec"]["template"]["metadata"]["annotations"] == {}
    elsewhere = kept.but(ref=ref.but(name="other"))
    own = with_hash(workload(), {}, [elsewhere])["spec"]["template"]["metadata"]["annotations"]
    assert own == {HASH_KEY: computed}


def test_what_the_former_controller_wrote() -> None:
    assert written_hash(workload(hash="theirs")) == "theirs"
    assert written_hash(workload()) == ""
    assert written_hash(workload(reads=False)) is None


def test_fields_that_differ_are_named_without_values() -> None:
    assert template_differences(workload(), workload()) == ""
    assert template_differences(workload(), workload("a:2", "h")) == (
        "Deployment web: spec.template.metadata.annotations[kudo.dev/dependencies-hash], "
        "spec.template.spec.containers[main].image"
    )
    fewer = template_differences(workload(), workload(reads=False))
    assert fewer == "Deployment web: spec.template.spec.volumes"
