"""What an operator wants of a task instead of its goal (reference 6.8)."""

from enum import StrEnum


class GoalOverride(StrEnum):
    """``PAUSED``: it runs a placeholder in place of its command, until it is resumed.
    ``DECOMMISSIONED``: it is being taken away, and nobody relaunches it."""

    PAUSED = "PAUSED"
    DECOMMISSIONED = "DECOMMISSIONED"
