"""The causes that an element waits for."""

from enum import StrEnum


class Cause(StrEnum):
    """The cause that an element waits for; with ``RUNNING`` and ``COMPLETE`` it does not wait."""

    COMPLETE = "complete"
    RUNNING = "running"
    CONTINUE = "continue"
    OFFER = "offer"
    ASSET = "asset"
    PREDECESSOR = "predecessor"
    BACKOFF = "backoff"
    READINESS = "readiness"
    HALTED = "halted"
    AGENT = "agent"
    WORKER = "worker"
    ERROR = "error"
