"""Where things are below an agent's work directory (drawn in the package's docstring)."""

import fcntl
import hashlib
import os
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from temporal_plans.activities.agent.files import read_value, write_value
from temporal_plans.activities.agent.records import (
    AgentRecord,
    ExitRecord,
    KillRecord,
    ReservationRecord,
    StartRecord,
    TaskRecord,
)
from temporal_plans.domain.task import TaskStatus

_LONGEST_NAME = 200


class WorkDirInUse(Exception):
    """Another agent uses this work directory; give this one a directory of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is used by another agent; stop that one or choose another work directory"
        )


def directory_name(identifier: str) -> str:
    """An id as the name of one file: readable when it can be, never a path out of its place."""
    name = quote(identifier, safe=" +,=@:")
    if name in {"", ".", ".."}:
        name = f"%{name}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(identifier.encode()).hexdigest()[:16]
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return name


class TaskDir:
    """The directory of one task."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sandbox = path / "sandbox"
        self.prepared = path / "prepared"
        self._task = path / "task.json"
        self._kill = path / "kill.json"
        self._started = path / "started.json"
        self._exit = path / "exit.json"
        self._status = path / "status.json"
        self._lock = path / "lock"

    def create(self) -> None:
        """Others may pass through, which a task of another user needs, but not look around."""
        self.path.mkdir(mode=0o711, exist_ok=True)
        self.path.chmod(0o711)

    @property
    def task(self) -> TaskRecord | None:
        return read_value(self._task, TaskRecord)

    @task.setter
    def task(self, value: TaskRecord) -> None:
        write_value(self._task, value)

    @property
    def kill(self) -> KillRecord | None:
        return read_value(self._kill, KillRecord)

    @kill.setter
    def kill(self, value: KillRecord) -> None:
        write_value(self._kill, value)

    @property
    def status(self) -> TaskStatus | None:
        return read_value(self._status, TaskStatus)

    @status.setter
    def status(self, value: TaskStatus) -> None:
        write_value(self._status, value)

    @property
    def started(self) -> StartRecord | None:
        return read_value(self._started, StartRecord)

    @property
    def exit(self) -> ExitRecord | None:
        return read_value(self._exit, ExitRecord)

    def supervisor(self) -> int | None:
        """The number of the living supervisor; 0 when it lives but hasn't said it yet.

        Whoever holds the lock lives: the kernel lets go of it with the process. So the number
        can't be that of a stranger.
        """
        try:
            lock = os.open(self._lock, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(lock, 20, 0) or b"0")
        else:
            return None
        finally:
            os.close(lock)


class WorkDir:
    """An agent's directory. OSError when it can't be made."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.launches = self.root / "launches.log"
        self.supervisor = self.root / "supervisor.pyc"
        self._tasks = self.root / "tasks"
        self._volumes = self.root / "volumes"
        self._reservations = self.root / "reservations"
        self._forbidden = self.root / "forbidden"
        self._lock: int | None = None

    def acquire(self) -> None:
        """Makes the directory and takes it for this process; WorkDirInUse when another has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)  # tasks of other users work below it
        for folder in (self._tasks, self._volumes, self._reservations, self._forbidden):
            folder.mkdir(mode=0o711, exist_ok=True)
            folder.chmod(0o711)
        lock = os.open(self.root / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise WorkDirInUse(self.root) from None
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def lineage(self) -> str:
        """The name of this directory, made when the first agent used it. A copy has the same."""
        path = self.root / "agent.json"
        known = read_value(path, AgentRecord)
        if known is None:
            known = AgentRecord(lineage=uuid4().hex)
            write_value(path, known)
        return known.lineage

    def task(self, task_id: str) -> TaskDir:
        return TaskDir(self._tasks / directory_name(task_id))

    def tasks(self) -> list[TaskDir]:
        """All tasks that are known here, running or not."""
        return [TaskDir(path) for path in sorted(self._tasks.iterdir()) if path.is_dir()]

    def volume(self, resource_id: str) -> Path:
        return self._volumes / directory_name(resource_id)

    def forbidden(self, task_id: str) -> Path:
        return self._forbidden / directory_name(task_id)

    def forbidden_marks(self) -> list[Path]:
        return list(self._forbidden.iterdir())

    def reservation(self, reservation_id: str) -> ReservationRecord:
        """What is known of a reservation; an empty record when nothing is."""
        known = read_value(self._reservation_path(reservation_id), ReservationRecord)
        return known or ReservationRecord(id=reservation_id)

    def keep_reservation(self, record: ReservationRecord) -> None:
        write_value(self._reservation_path(record.id), record)

    def _reservation_path(self, reservation_id: str) -> Path:
        return self._reservations / f"{directory_name(reservation_id)}.json"
