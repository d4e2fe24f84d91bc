"""The log lines of the SDK's core. By default it prints them on standard output, where they would
spoil a table or JSON."""

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

_UNREACHABLE_SIGNS = ("gRPC call", "tcp connect error", "transport error")
_LOG_INTERVAL = 60.0
"""Seconds between two lines about a server that does not answer."""


class UnreachableFilter(logging.Filter):
    """Reduces the lines about failed polls and heartbeats, several a second while the server does
    not answer, to one line a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._logged = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        if not any(sign in record.getMessage() for sign in _UNREACHABLE_SIGNS):
            return True
        if self._now() - self._logged < _LOG_INTERVAL:
            return False
        self._logged = self._now()
        record.msg, record.args = "the Temporal server does not answer; retrying", ()
        return True


@cache
def silent_runtime() -> Runtime:
    """Return the runtime for short commands, which print errors themselves.

    One per process, because each runtime has threads of its own.
    """
    return Runtime(telemetry=TelemetryConfig(logging=None))


def logging_runtime() -> Runtime:
    """Return the runtime for long-running processes: warnings and worse go to Python's logging."""
    logging.getLogger(LOGGER).addFilter(UnreachableFilter())
    return Runtime(
        telemetry=TelemetryConfig(
            logging=LoggingConfig(
                filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                forwarding=LogForwardingConfig(logger=logging.getLogger(LOGGER)),
            )
        )
    )
