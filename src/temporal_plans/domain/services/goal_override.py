"""Overrides of task goals by operators (behaviour 6.8)."""

from enum import StrEnum


class GoalOverride(StrEnum):
    """``PAUSED``: the task runs a placeholder instead of its command, until it is resumed.
    ``DECOMMISSIONED``: the task is being removed, and is not relaunched."""

    PAUSED = "PAUSED"
    DECOMMISSIONED = "DECOMMISSIONED"
