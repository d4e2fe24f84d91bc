"""What is wrong with pods, and what events say."""

from typing import Any

import pytest

from temporal_plans.domain.packages.object_report import NOTE_LIMIT, NOTES_LIMIT
from temporal_plans.domain.packages.pod_trouble import in_trouble, troubles, warnings


def pod(name: str = "a", phase: str = "Running", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase, **status}}


def container(state: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "state": state, **more}]


CRASHED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
LOOPS = container(
    {"waiting": {"reason": "CrashLoopBackOff"}}, lastState=CRASHED, restartCount=5, ready=False
)
CREATING = container({"waiting": {"reason": "ContainerCreating"}})
UNPLACED = [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes fit"}]


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (pod(containerStatuses=container({"running": {}}, ready=True)), ""),
        (pod(phase="Succeeded"), ""),
        (pod(), ""),
        (pod(containerStatuses=LOOPS),
         "main: CrashLoopBackOff (OOMKilled, exit code 137, 5 restarts)"),
        (pod(initContainerStatuses=LOOPS, containerStatuses=CREATING),
         "main: CrashLoopBackOff (OOMKilled, exit code 137, 5 restarts), main: ContainerCreating"),
        (pod(phase="Failed", containerStatuses=container({"terminated": {"exitCode": 1}})),
         "main: ended (exit code 1)"),
        (pod(containerStatuses=container({"terminated": {"exitCode": 0}})), ""),
        (pod(phase="Pending", conditions=UNPLACED), "is not scheduled: 0/1 nodes fit"),
        (pod(phase="Failed", reason="Evicted"), "failed: Evicted"),
        ({"metadata": {"name": "a", "deletionTimestamp": "now"}}, "is being deleted"),
        (pod(containerStatuses="odd"), ""),
    ],
)  # fmt: skip
def test_trouble(seen: dict[str, Any], text: str) -> None:
    assert troubles([seen]) == ((f"Pod a: {text}",) if text else ())
    assert bool(in_trouble([seen])) is bool(text)


def test_pods_that_start_are_named_last_and_all_is_bounded() -> None:
    starting = [pod(f"s{number}", containerStatuses=CREATING) for number in range(5)]
    long = container({"waiting": {"reason": "x" * 1000}})
    found = troubles([*starting, pod("z", containerStatuses=long)])
    assert len(found) == NOTES_LIMIT
    assert found[0].startswith("Pod z: ")
    assert len(found[0]) == NOTE_LIMIT


def event(reason: str, at: str, kind: str = "Warning", **more: Any) -> dict[str, Any]:
    return {"type": kind, "reason": reason, "message": "text", "lastTimestamp": at, **more}


def test_the_last_warnings() -> None:
    events = [
        event("A", "1"),
        event("B", "4", count=7),
        event("C", "9", kind="Normal"),
        event("D", "3"),
        event("D", "2"),
        {"type": "Warning", "eventTime": "5"},
    ]
    assert warnings(events) == ("Warning: ", "B: text (7 times)", "D: text")
