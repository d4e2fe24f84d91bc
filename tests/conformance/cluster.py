"""What the suite needs around a backend: machines that come and start again, and a listener."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from temporal_plans.activities.pools.backend import Backend
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.tasks.statuses import TaskStatus

NEVER = timedelta(hours=1)
"""A grace period that no reservation of a test outlives."""

BRIEF = timedelta(seconds=6)
"""One that a test can wait for, and that is still long for two calls in a row."""


class Cluster(Protocol):
    """One pool of a backend, with no machine at first.

    ``listener`` is the workflow that statuses and offers are sent to. Machines run these commands:
    ``sleep N``, until it is killed, and ``exit N``, which ends at once. What has an image can't
    start there.
    """

    backend: Backend
    pool: str
    listener: str

    async def add(self, machine: str, *, cpus: float = 4) -> str:
        """A machine with so many cores joins the pool; its id, which begins with that name."""
        ...

    async def restart(self, machine: str) -> None:
        """The process of a machine ends and starts again; what it runs goes on."""
        ...

    async def reports(self) -> Sequence[TaskStatus]:
        """The statuses that were sent to the listener so far, in order."""
        ...

    async def offers(self) -> Sequence[str]:
        """The keys of the reservations that the listener was offered so far."""
        ...

    def starts(self, task_id: str) -> int:
        """How many processes were started for a task."""
        ...

    def has_volumes(self, held: Reservation) -> bool:
        """Whether its machine has a volume of a reservation."""
        ...

    async def outlive_grace(self) -> None:
        """Return when all that is reserved now is older than the grace period."""
        ...
