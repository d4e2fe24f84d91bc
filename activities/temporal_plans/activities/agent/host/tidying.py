"""Selects the expired files of ended tasks. Pure."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from temporal_plans.domain.tasks.statuses import TaskStatus


def expired_sandboxes(statuses: Iterable[TaskStatus], keep: int, oldest: datetime) -> list[str]:
    """Return the ids beyond the newest ``keep`` of one task name's last statuses, or too old."""
    newest_first = sorted(statuses, key=lambda status: (status.at, status.task_id), reverse=True)
    return [
        status.task_id
        for place, status in enumerate(newest_first)
        if place >= keep or status.at < oldest
    ]


def expired_marks(marks: Iterable[Path], oldest: float) -> list[Path]:
    """Return the marks in ``forbidden/`` older than ``oldest`` (seconds since the epoch)."""
    return [mark for mark in marks if mark.stat().st_mtime < oldest]
