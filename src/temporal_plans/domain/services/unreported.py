"""Recorded launches that no agent reports: they were cancelled before an agent had them."""

from datetime import timedelta

REPORT_TIMEOUT = timedelta(seconds=60)
"""How long a launch may stay unreported. Its agent reports it at once, also when it comes back, or
is lost after about that time."""

UNREPORTED = "no agent reported this launch"
"""The message of the status of such a task."""
