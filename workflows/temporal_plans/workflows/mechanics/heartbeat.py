"""The heartbeat timeout of activities."""

from datetime import timedelta

HEARTBEAT_TIMEOUT = timedelta(seconds=10)
"""An activity that sends no heartbeat for this long is retried on another worker. Without this
timeout, a worker or agent that was killed would block its step until the activity's own timeout."""
