"""Names of task queues."""

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

RESERVED_QUEUES = ("/_sys/", "temporal-sys-")
"""The prefixes of the server's own task queues. The server schedules nothing there for others, so
a workflow that tries is stuck."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def _checked(queue: str) -> str:
    if queue.startswith(RESERVED_QUEUES):
        raise ValueError(f"must not begin with {' or '.join(RESERVED_QUEUES)}")
    if _CONTROL.search(queue):
        raise ValueError("must not contain control characters")
    return queue


AgentQueue = Annotated[str, StringConstraints(max_length=200), AfterValidator(_checked)]
"""The task queue of an agent; empty where it is unknown."""
