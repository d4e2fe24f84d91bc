"""What an agent concludes from what it finds on disk, and how it names things there."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporal_plans.activities.agent.layout import directory_name
from temporal_plans.activities.agent.records import (
    ExitRecord,
    KillRecord,
    StartRecord,
    ending,
    lost,
)
from temporal_plans.activities.agent.tidying import expired_sandboxes
from temporal_plans.domain.task import TaskState, TaskStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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
    assert ending(exit, kill) == expected


def test_a_task_of_another_boot_was_lost_with_it() -> None:
    started = StartRecord(pid=1, start=2, supervisor=3, uid=0, boot="old", at=NOW)
    assert lost("new", started).message == "the machine was started again while the task ran"
    assert "no exit code" in lost("old", started).message
    assert lost("old", started).state is TaskState.LOST


def test_a_kill_record_is_written_whole() -> None:
    """The supervisor reads it without knowing any default."""
    assert '"grace":0.0' in KillRecord(grace=0).model_dump_json()


@settings(deadline=None)
@given(st.text(min_size=1, max_size=300))
def test_any_id_is_one_file_name(identifier: str) -> None:
    name = directory_name(identifier)
    assert (Path("/tasks") / name).parent == Path("/tasks")
    assert name not in ("", ".", "..")
    assert len(name.encode()) <= 255


@settings(deadline=None)
@given(st.lists(st.text(max_size=260), unique=True, max_size=20))
def test_different_ids_are_different_files(identifiers: list[str]) -> None:
    assert len({directory_name(identifier) for identifier in identifiers}) == len(identifiers)


def test_ordinary_ids_are_readable() -> None:
    assert directory_name("folder.hello__hello-0-server__1a-b") == (
        "folder.hello__hello-0-server__1a-b"
    )


def status(task_id: str, minutes_ago: int) -> TaskStatus:
    return TaskStatus(
        task_id=task_id,
        name="hello-0-server",
        state=TaskState.FINISHED,
        sequence=2,
        at=NOW - timedelta(minutes=minutes_ago),
    )


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
    statuses = [status("old", 90), status("new", 1), status("middle", 30)]
    assert expired_sandboxes(statuses, keep, NOW - timedelta(hours=hours)) == expected
