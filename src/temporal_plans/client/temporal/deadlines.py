"""How long a client waits for a server and its workers."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Deadlines:
    """The timeouts of a client's requests."""

    answer: timedelta = timedelta(seconds=10)
    """For a worker's answer to a query."""

    accept: timedelta = timedelta(seconds=15)
    """For an update to be accepted. A worker that is being stopped may still hold a workflow task,
    which the server gives to another worker after ten seconds."""

    completion: timedelta = timedelta(seconds=120)
    """For an accepted update: a new configuration is checked first, and a plan that is superseded
    ends its work in order."""

    lost_answer: timedelta = timedelta(seconds=15)
    """For the answer to an update whose connection broke."""

    clock_skew: timedelta = timedelta(minutes=1)
    """The largest expected difference between the server's clock and the client's."""
