"""What is wrong with an object, in words: by its report, or by what the cluster refused."""

from typing import Any

import pytest

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.object_causes import (
    ObjectCause,
    cause_of_reason,
    cause_of_refusal,
    cause_of_report,
)
from temporal_plans.domain.packages.object_report import FieldChange, ObjectReport, ObjectState


def report(kind: str = "Deployment", **fields: Any) -> ObjectReport:
    ref = ObjectRef(api_version="apps/v1", kind=kind, namespace="here", name="web")
    return ObjectReport.model_validate({"ref": ref, "state": "unhealthy", **fields})


CHANGE = FieldChange(field="spec.replicas", by="kubectl")


@pytest.mark.parametrize(
    ("seen", "cause", "text"),
    [
        (report(state="healthy", changes=(CHANGE,)), ObjectCause.CHANGED,
         "others have changed it since it was applied: spec.replicas (by kubectl)"),
        (report(reason="3 of 1 replicas", changes=(CHANGE,)), ObjectCause.CHANGED,
         "web: 3 of 1 replicas; others have changed it since it was applied: spec.replicas"),
        (report(reason="it is being deleted", changes=(CHANGE,)), ObjectCause.DELETED,
         "it is being deleted; others have changed it"),
        (report(state="foreign", reason="it belongs to the instance db"), ObjectCause.FOREIGN,
         "Deployment web: it belongs to the instance db"),
        (report(state="missing", reason="gone"), ObjectCause.MISSING, "Deployment web: gone"),
        (report(reason="0 of 1 replicas are available",
                pods=("Pod a: main: CrashLoopBackOff (exit code 1)",)), ObjectCause.CRASHES,
         "Deployment web: 0 of 1 replicas are available: Pod a: main: CrashLoopBackOff"),
        (report(reason="no", pods=("Pod a: fine", "Pod b: main: ImagePullBackOff")),
         ObjectCause.NO_IMAGE, "Pod b: main: ImagePullBackOff"),
        (report(reason="no", pods=("Pod a: main: CreateContainerConfigError",)),
         ObjectCause.BAD_CONFIGURATION, "CreateContainerConfigError"),
        (report(reason="no", pods=("Pod a: is not scheduled: 0/1 nodes",)),
         ObjectCause.NOT_SCHEDULED, "0/1 nodes"),
        (report("Job", state="failed", reason="the Job failed: BackoffLimitExceeded",
                pods=("Pod a: main: ended (exit code 2)",)), ObjectCause.JOB_FAILED,
         "the Job failed: BackoffLimitExceeded: Pod a: main: ended (exit code 2)"),
        (report(reason='pods "a" is forbidden: exceeded quota: full'), ObjectCause.QUOTA,
         "exceeded quota: full"),
        (report(reason="0 of 1 replicas are ready",
                events=("FailedCreate: pods is forbidden: exceeded quota: full",)),
         ObjectCause.QUOTA, "0 of 1 replicas are ready: FailedCreate"),
        (report(reason="0 of 1", events=('FailedCreate: admission webhook "x" denied request',)),
         ObjectCause.WEBHOOK_REFUSES, "denied request"),
        (report(reason="it is being deleted"), ObjectCause.DELETED, "it is being deleted"),
        (report(state="unknown", reason='User "x" cannot get resource "pods" (403)'),
         ObjectCause.FORBIDDEN, 'User "x"'),
        (report(reason="0 of 1", events=("Odd: something",)), ObjectCause.OTHER,
         "Deployment web: 0 of 1: Odd: something"),
    ],
    ids=lambda value: value.value if isinstance(value, ObjectCause) else "",
)  # fmt: skip
def test_causes_of_reports(seen: ObjectReport, cause: ObjectCause, text: str) -> None:
    found = cause_of_report(seen)
    assert found is not None
    assert (found.cause, text in found.text) == (cause, True), found.text
    assert found.fix


def test_a_healthy_object_that_nobody_changed_has_no_cause() -> None:
    assert cause_of_report(report(state="healthy")) is None


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Secret x: secrets is forbidden: exceeded quota: full (403)", ObjectCause.QUOTA),
        ("Secret x: forbidden: status unknown for quota: full (403)", ObjectCause.QUOTA),
        ('ConfigMap x: failed calling webhook "y": refused (500)', ObjectCause.WEBHOOK_DOWN),
        ('ConfigMap x: admission webhook "y" denied the request: no (400)',
         ObjectCause.WEBHOOK_REFUSES),
        ("ConfigMap x: ValidatingAdmissionPolicy 'y' with binding 'y' denied request: no (422)",
         ObjectCause.WEBHOOK_REFUSES),
        ("Thing x: the cluster has no such kind in tests.example/v1; apply", ObjectCause.NO_KIND),
        ("ConfigMap x: Unauthorized (401)", ObjectCause.CREDENTIALS),
        ('ConfigMap x: namespace here because it is being terminated (403)',
         ObjectCause.NAMESPACE_DELETED),
        ('ConfigMap x: namespaces "here" not found (404)', ObjectCause.NO_NAMESPACE),
        ('ConfigMap x: User "nobody" cannot patch resource "configmaps" (403)',
         ObjectCause.FORBIDDEN),
        ("Job x: spec.template: field is immutable (422)", ObjectCause.IMMUTABLE),
        ("StatefulSet x: updates to statefulset spec for fields other than 'replicas' (422)",
         ObjectCause.IMMUTABLE),
        ("ConfigMap x: the API server can't be reached: no route", ObjectCause.UNREACHABLE),
        ('ConfigMap x: ConfigMap "x" is invalid: metadata.labels: Invalid value (422)',
         ObjectCause.INVALID),
        ("ConfigMap x: Too Many Requests (429)", ObjectCause.SERVER),
        ("ConfigMap x: Bad Gateway (502)", ObjectCause.SERVER),
    ],
    ids=lambda value: value.value if isinstance(value, ObjectCause) else "",
)  # fmt: skip
def test_causes_of_refusals(text: str, cause: ObjectCause) -> None:
    found = cause_of_refusal(text)
    assert found is not None
    assert (found.cause, found.text) == (cause, text)
    assert found.fix


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("step app is in error: deploy.main.app.app: Job once: the Job failed: BackoffLimit",
         ObjectCause.JOB_FAILED),
        ("step app is in error: ConfigMap x: it belongs to the instance db; give it another name",
         ObjectCause.FOREIGN),
        ("step app has started: Deployment x: 0 of 1 replicas are available: Pod a: main: "
         "CrashLoopBackOff (exit code 1)", ObjectCause.CRASHES),
        ("step app failed and is retried later: Secret x: forbidden: exceeded quota: full (403)",
         ObjectCause.QUOTA),
        ("step app failed and is retried later: Namespace x is being deleted",
         ObjectCause.NAMESPACE_DELETED),
    ],
    ids=lambda value: value.value if isinstance(value, ObjectCause) else "",
)  # fmt: skip
def test_causes_of_reasons_of_steps(text: str, cause: ObjectCause) -> None:
    found = cause_of_reason(text)
    assert found is not None
    assert (found.cause, found.text) == (cause, text)
    assert found.fix


def test_a_step_that_waits_for_its_strategy_has_no_cause() -> None:
    assert cause_of_reason("step b waits for a") is None


def test_an_object_that_is_missing_with_its_kind_or_its_namespace() -> None:
    gone = report(state="missing", reason="the cluster has no such kind in tests.example/v1")
    lost = report(state="missing", reason='namespaces "here" not found')
    causes = [found.cause for one in (gone, lost) if (found := cause_of_report(one))]
    assert causes == [ObjectCause.NO_KIND, ObjectCause.NO_NAMESPACE]


def test_an_unknown_refusal_has_no_cause() -> None:
    assert cause_of_refusal("ConfigMap x: metadata.name: Invalid value (422)") is None


def test_states_of_objects_have_those_of_health() -> None:
    assert {"healthy", "unhealthy", "failed"} <= {state.value for state in ObjectState}
