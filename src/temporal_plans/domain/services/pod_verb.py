"""The commands of operators to pods (behaviour 6.7, 6.8)."""

from enum import StrEnum


class PodVerb(StrEnum):
    """The commands to pods, by the names of their signals and updates."""

    RESTART = "restart_pod"
    REPLACE = "replace_pod"
    PAUSE = "pause_pod"
    RESUME = "resume_pod"
