"""The lines that the core of the SDK logs. By itself it prints them on standard output, where they
would spoil a table or JSON."""

import logging
import time
from collections.abc import Callable
from functools import cache

from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

LOGGER = "temporalio.core"

_UNREACHABLE = ("gRPC call", "tcp connect error", "transport error")
_EVERY = 60.0  # seconds


class Unreachable(logging.Filter):
    """While the server is away, the core tells every poll and heartbeat that fails, several a
    second. Here it is one line a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._told = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if not any(sign in record.getMessage() for sign in _UNREACHABLE):
            return True
        if self._now() - self._told < _EVERY:
            return False
        self._told = self._now()
        record.msg, record.args = "the Temporal server does not answer; trying again", ()
        return True


@cache
def silent_runtime() -> Runtime:
    """For commands that ask and answer: what goes wrong is told in our own words.

    One a process: each has threads of its own."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


def logging_runtime() -> Runtime:
    """For processes that stay: warnings and worse become lines of Python's logging."""
    logging.getLogger(LOGGER).addFilter(Unreachable())
    return Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(
                filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                forwarding=LogForwardingConfig(logger=logging.getLogger(LOGGER)),
            )
        )
    )
