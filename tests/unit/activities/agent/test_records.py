"""What an agent concludes from what it finds on disk, and how it names things there."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.clock import NOW
from builders.tasks import status
from temporal_plans.activities.agent.host.layout import directory_name
from temporal_plans.activities.agent.host.records import (
    ExitRecord,
    KillRecord,
    StartRecord,
    exit_ending,
    lost_ending,
)
from temporal_plans.activities.agent.host.tidying import expired_sandboxes
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

WISH = KillRecord(grace=0, reason="restarted")
UNHEALTHY = KillRecord(grace=0, state=TaskState.FAILED, reason="unhealthy")


@pytest.mark.parametrize(
    ("exit", "kill", "expected"),
    [
        pytest.param(
            ExitRecord(code=0, at=NOW), None, (TaskState.FINISHED, "exit code 0", 0), id="success"
        ),
        pytest.param(
            ExitRecord(code=2, at=NOW), None, (TaskState.FAILED, "exit code 2", 2), id="failure"
        ),
        pytest.param(
            ExitRecord(signal=9, at=NOW),
            None,
            (TaskState.FAILED, "ended by SIGKILL", 137),
            id="signal of others",
        ),
        pytest.param(
            ExitRecord(signal=40, at=NOW),
            None,
            (TaskState.FAILED, "ended by signal 40", 168),
            id="real-time signal",
        ),
        pytest.param(
            ExitRecord(signal=15, killed=True, at=NOW),
            WISH,
            (TaskState.KILLED, "restarted (ended by SIGTERM)", 143),
            id="killed",
        ),
        pytest.param(
            ExitRecord(code=0, killed=True, at=NOW),
            WISH,
            (TaskState.KILLED, "restarted (exit code 0)", 0),
            id="killed, and left politely",
        ),
        pytest.param(
            ExitRecord(code=0, at=NOW),
            WISH,
            (TaskState.FINISHED, "exit code 0", 0),
            id="was done before the kill came",
        ),
        pytest.param(
            ExitRecord(signal=15, killed=True, at=NOW),
            UNHEALTHY,
            (TaskState.FAILED, "unhealthy (ended by SIGTERM)", 143),
            id="unhealthy",
        ),
        pytest.param(
            ExitRecord(signal=15, killed=True, at=NOW),
            None,
            (TaskState.KILLED, "ended by a signal to its supervisor, ended by SIGTERM", 143),
            id="machine going down",
        ),
        pytest.param(
            ExitRecord(error="no such user", at=NOW),
            None,
            (TaskState.ERROR, "no such user", None),
            id="never ran",
        ),
    ],
)
def test_how_a_task_ended(
    exit: ExitRecord, kill: KillRecord | None, expected: tuple[TaskState, str, int | None]
) -> None:
    assert exit_ending(exit, kill) == expected


def test_a_task_of_another_boot_was_lost_with_it() -> None:
    started = StartRecord(pid=1, start=2, supervisor=3, uid=0, boot="old", at=NOW)
    assert lost_ending("new", started).message == "the machine was rebooted while the task ran"
    assert "no exit code" in lost_ending("old", started).message
    assert lost_ending("old", started).state is TaskState.LOST


def test_a_kill_record_is_written_whole() -> None:
    """The supervisor reads it without knowing any default."""
    assert '"grace":0.0' in KillRecord(grace=0).model_dump_json()


@given(st.text(min_size=1, max_size=300))
def test_any_id_is_one_file_name(identifier: str) -> None:
    name = directory_name(identifier)
    assert (Path("/tasks") / name).parent == Path("/tasks")
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 255


@given(st.lists(st.text(max_size=260), unique=True, max_size=20))
def test_different_ids_are_different_files(identifiers: list[str]) -> None:
    assert len({directory_name(identifier) for identifier in identifiers}) == len(identifiers)


def test_ordinary_ids_are_readable() -> None:
    assert directory_name("folder.hello__hello-0-server__1a-b") == (
        "folder.hello__hello-0-server__1a-b"
    )


def finished(task_id: str, minutes_ago: int) -> TaskStatus:
    at = NOW - timedelta(minutes=minutes_ago)
    return status(task_id, TaskState.FINISHED, sequence=2, at=at)


@pytest.mark.parametrize(
    ("keep", "hours", "expected"),
    [
        pytest.param(5, 10, [], id="few and young"),
        pytest.param(2, 10, ["old"], id="too many"),
        pytest.param(5, 1, ["old"], id="too old"),
        pytest.param(1, 0, ["new", "middle", "old"], id="none may stay"),
    ],
)
def test_which_sandboxes_go(keep: int, hours: int, expected: list[str]) -> None:
    statuses = [finished("old", 90), finished("new", 1), finished("middle", 30)]
    assert expired_sandboxes(statuses, keep, NOW - timedelta(hours=hours)) == expected
