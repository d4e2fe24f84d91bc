"""How far the pod of a Pipe task is."""

from typing import Any

import pytest

from temporal_plans.domain.packages.pipes.progress import PodState, made_by, pod_progress

Json = dict[str, Any]

READY: Json = {"type": "Ready", "status": "True"}


def live(phase: str, *, init: Json | None = None, waiter: Json | None = None, **more: Any) -> Json:
    status = {
        "phase": phase,
        "initContainerStatuses": [{"name": "make", **(init or {})}],
        "containerStatuses": [{"name": "waiter", **(waiter or {})}],
        **more,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "u"}, "status": status}


def waiting(reason: str, **more: Any) -> Json:
    return {"state": {"waiting": {"reason": reason}}, **more}


CRASHED = {"lastState": {"terminated": {"exitCode": 3}}}
DELETED = {**live("Running", conditions=[READY]), "metadata": {"deletionTimestamp": "now"}}


@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        pytest.param(live("Running", conditions=[READY]), PodState.READY, "", id="ready"),
        pytest.param(
            live("Running", conditions=[READY], waiter={"restartCount": 9}),
            PodState.READY,
            "",
            id="ready-after-restarts",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod"},
            PodState.WAITING,
            "the pod is Pending and not ready",
            id="new",
        ),
        pytest.param(
            live("Pending", init=waiting("ImagePullBackOff")),
            PodState.WAITING,
            "the pod is Pending and not ready: make: ImagePullBackOff",
            id="no-image",
        ),
        pytest.param(
            live("Pending", init=waiting("CrashLoopBackOff", restartCount=4, **CRASHED)),
            PodState.WAITING,
            "the pod is Pending and not ready: make: CrashLoopBackOff",
            id="crashes",
        ),
        pytest.param(
            live("Pending", init=waiting("CrashLoopBackOff", restartCount=5, **CRASHED)),
            PodState.FAILED,
            "the container make failed 5 times, at last with exit code 3",
            id="crashes-too-often",
        ),
        pytest.param(
            live("Running", waiter={"restartCount": 5}),
            PodState.FAILED,
            "the container waiter failed 5 times",
            id="the-image-of-the-waiter-is-no-good",
        ),
        pytest.param(
            live("Failed", reason="Evicted", message="disk pressure"),
            PodState.LOST,
            "the pod ended: Evicted: disk pressure",
            id="evicted",
        ),
        pytest.param(
            live("Failed", reason="DeadlineExceeded"),
            PodState.FAILED,
            "the pod ended: DeadlineExceeded",
            id="deadline",
        ),
        pytest.param(
            live("Succeeded"), PodState.LOST, "the pod ended: it succeeded", id="succeeded"
        ),
        pytest.param(DELETED, PodState.LOST, "the pod is being deleted", id="deleted"),
    ],
)
def test_a_pod_is_judged(found: Json, state: PodState, reason: str) -> None:
    progress = pod_progress(found)
    assert (progress.state, progress.reason) == (state, reason)


def test_another_run_of_the_init_container_made_other_files() -> None:
    first = live("Running", init={"restartCount": 0, "containerID": "a"})
    assert made_by(first) == made_by(live("Running", init={"restartCount": 0, "containerID": "a"}))
    assert made_by(first) != made_by(live("Running", init={"restartCount": 1, "containerID": "b"}))
    assert made_by({}) == ("", "0  ")
