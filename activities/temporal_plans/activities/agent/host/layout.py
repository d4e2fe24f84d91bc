"""The files below an agent's work directory (see the package's docstring)."""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote
from uuid import uuid4

from temporal_plans.activities.agent.host.records import (
    ExitRecord,
    KillRecord,
    LaunchRecord,
    LineageRecord,
    ReservationRecord,
    StartRecord,
)
from temporal_plans.activities.agent.sandbox.files import UnreadableFile, read_value, write_value
from temporal_plans.activities.agent.supervisor.lock_holder import lock_holder
from temporal_plans.activities.mechanics.file_lock import try_lock
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.domain.values.model import Value

_log = logging.getLogger(__name__)

_NAME_LENGTH_LIMIT = 200

_LOCK_TIMEOUT = 1.0
"""Seconds: a process that a killed agent had just forked has the lock until it is replaced."""
_LOCK_INTERVAL = 0.02  # seconds

V = TypeVar("V", bound=Value)


class WorkDirInUse(UserFacingError):
    """Another agent uses this work directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"work directory {path} is used by another agent; stop that agent or choose another"
            " directory"
        )


class WorkDirUnreadable(UserFacingError):
    """The identity of this work directory can't be read."""

    def __init__(self, path: Path, problem: UnreadableFile) -> None:
        super().__init__(
            f"work directory {path}: {problem}; restore the file from a backup, or delete it: then "
            "the agent registers as another one, and adopts the tasks all the same"
        )


def directory_name(identifier: str) -> str:
    """Return an id as a file name: readable where possible, never with a path separator."""
    name = quote(identifier, safe=" +,=@:")
    if name in {"", ".", ".."}:
        name = f"%{name}"
    if len(name) > _NAME_LENGTH_LIMIT:
        digest = hashlib.sha256(identifier.encode()).hexdigest()[:16]
        name = f"{name[:_NAME_LENGTH_LIMIT]}~{digest}"
    return name


def identifier_of(directory: Path) -> str | None:
    """Return the id that ``directory_name`` made this name from; None if it was too long."""
    return None if len(directory.name) > _NAME_LENGTH_LIMIT else unquote(directory.name)


def _any(value: object) -> bool:
    return True


class TaskDir:
    """The directory of one task.

    A record that is there and can't be read counts as None, but not as absent: ``unreadable`` has
    the reason by file name, and ``was_started`` looks at the files, not into them. So does a record
    of another task, which a damaged or restored disk may have here: by it, that task would be
    reported or killed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sandbox = path / "sandbox"
        self.prepared = path / "prepared"
        self.unreadable: dict[str, str] = {}
        self._task = path / "task.json"
        self._kill = path / "kill.json"
        self._started = path / "started.json"
        self._exit = path / "exit.json"
        self._status = path / "status.json"
        self._lock = path / "lock"
        self._first_start: StartRecord | None = None

    def create(self) -> None:
        """Create the directory. Other users may traverse it, as their tasks do, not list it."""
        self.path.mkdir(mode=0o711, exist_ok=True)
        self.path.chmod(0o711)

    @property
    def task(self) -> LaunchRecord | None:
        return self._read(self._task, LaunchRecord, lambda record: self._is_own(record.task_id))

    @task.setter
    def task(self, value: LaunchRecord) -> None:
        write_value(self._task, value)

    @property
    def kill(self) -> KillRecord | None:
        return self._read(self._kill, KillRecord)

    @kill.setter
    def kill(self, value: KillRecord) -> None:
        write_value(self._kill, value)

    @property
    def status(self) -> TaskStatus | None:
        return self._read(self._status, TaskStatus, lambda status: self._is_own(status.task_id))

    @status.setter
    def status(self, value: TaskStatus) -> None:
        write_value(self._status, value)

    @property
    def started(self) -> StartRecord | None:
        """The start, which never changes; it is known even if the file is damaged later."""
        if self._first_start is None:
            self._first_start = self._read(self._started, StartRecord, self._is_own_start)
        return self._first_start

    @started.setter
    def started(self, value: StartRecord) -> None:
        self._first_start = value
        write_value(self._started, value)

    @property
    def exit(self) -> ExitRecord | None:
        return self._read(self._exit, ExitRecord, self._is_own_exit)

    @property
    def was_started(self) -> bool:
        """Whether a supervisor has started the task, readable or not."""
        return any(os.path.lexists(path) for path in (self._started, self._exit))

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded: the agent ended before it saved the launch order."""
        records = (self._task, self._kill, self._status, self._lock)
        return not self.was_started and not any(os.path.lexists(path) for path in records)

    def supervisor(self) -> int | None:
        """Return the process id of the running supervisor; 0 when it has not written it yet; None
        without a supervisor."""
        holder = lock_holder(self._lock)
        if holder is None:
            return None
        if holder.damaged:
            self._note("lock", "lock can't be read (it names another process, or none)")
        return holder.pid

    def _read(self, path: Path, kind: type[V], is_own: Callable[[V], bool] = _any) -> V | None:
        try:
            value = read_value(path, kind)
            if value is not None and not is_own(value):
                raise UnreadableFile(path, "it is another task's")
        except UnreadableFile as problem:
            self._note(path.name, str(problem))
            return None
        self.unreadable.pop(path.name, None)
        return value

    def _is_own(self, task_id: str) -> bool:
        return directory_name(task_id) == self.path.name

    def _is_own_start(self, start: StartRecord) -> bool:
        return start.record is None or self._is_own(start.record.task_id)

    def _is_own_exit(self, exit: ExitRecord) -> bool:
        """Whether the supervisor that started the task has written it, as far as is known."""
        start = self.started
        if start is None or not start.supervisor or exit.supervisor is None:
            return True
        return exit.supervisor == start.supervisor

    def _note(self, name: str, problem: str) -> None:
        """Note and log a problem once, however often the file is read."""
        if self.unreadable.get(name) != problem:
            self.unreadable[name] = problem
            _log.warning("%s: %s", self.path, problem)


class WorkDir:
    """An agent's work directory."""

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
        """Create the directory and lock it for this process. Raises WorkDirInUse and OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o755)  # tasks of other users work below it
        for folder in (self._tasks, self._volumes, self._reservations, self._forbidden):
            folder.mkdir(mode=0o711, exist_ok=True)
            folder.chmod(0o711)
        lock = os.open(self.root / "agent.lock", os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while not try_lock(lock):
            if time.monotonic() > deadline:
                os.close(lock)
                raise WorkDirInUse(self.root)
            time.sleep(_LOCK_INTERVAL)
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def lineage(self) -> str:
        """Return the id of this directory, created by its first agent. A copy has the same id.
        Raises WorkDirUnreadable and OSError."""
        path = self.root / "agent.json"
        try:
            record = read_value(path, LineageRecord)
        except UnreadableFile as problem:
            raise WorkDirUnreadable(self.root, problem) from None
        if record is None:
            record = LineageRecord(lineage=uuid4().hex)
            write_value(path, record)
        return record.lineage

    def task(self, task_id: str) -> TaskDir:
        return TaskDir(self._tasks / directory_name(task_id))

    def tasks(self) -> list[TaskDir]:
        """Return all tasks with a directory here, running or not."""
        return [TaskDir(path) for path in sorted(self._tasks.iterdir()) if path.is_dir()]

    def volume(self, resource_id: str) -> Path:
        return self._volumes / directory_name(resource_id)

    def forbidden_mark(self, task_id: str) -> Path:
        return self._forbidden / directory_name(task_id)

    def forbidden_marks(self) -> list[Path]:
        return list(self._forbidden.iterdir())

    def reservation(self, reservation_id: str) -> ReservationRecord:
        """Return the record of a reservation; an empty one when there is none, or when it can't be
        read: launch orders and the records of tasks have what it says."""
        path = self._reservation_path(reservation_id)
        try:
            record = read_value(path, ReservationRecord)
        except UnreadableFile as problem:
            _log.warning("%s: %s; it is written again", path.parent, problem)
            record = None
        return record or ReservationRecord(id=reservation_id)

    def save_reservation(self, record: ReservationRecord) -> None:
        write_value(self._reservation_path(record.id), record)

    def _reservation_path(self, reservation_id: str) -> Path:
        return self._reservations / f"{directory_name(reservation_id)}.json"
