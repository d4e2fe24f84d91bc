"""The goal of a task."""

from enum import StrEnum


class Goal(StrEnum):
    """What a task is meant to reach (behaviour 3.5)."""

    RUNNING = "RUNNING"
    FINISH = "FINISH"
    ONCE = "ONCE"
