"""The interface of a cluster backend: five idempotent verbs.

An activity may run more than once, and an answer may be lost. So every verb identifies its object
by an id (a reservation key, a reservation's id, task ids), and a retry with the same id changes
nothing more. ``tests/conformance`` tests that for every backend.

A machine registers with its task queue (``AgentInfo.queue``). Reservations and statuses repeat that
queue: callers take it from there and compose no names. Workflows schedule ``launch``, ``run_task``
and ``kill`` on it directly as activities; ``Machine`` is for callers outside workflows.
"""

from typing import Protocol

from temporal_plans.messages.pools import (
    OwnersReport,
    Reconciled,
    ReleaseInput,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
)
from temporal_plans.messages.tasks import KillInput, LaunchInput, TaskStatuses


class Placement(Protocol):
    """Assigns resources. Everything is stored by reservation key: owner, pod and index."""

    async def reserve(self, request: ReserveInput) -> ReserveResult:
        """Return the reservation of a pod instance, or a refusal by each machine with the reason;
        the requirement then waits, and the workflow ``requirement.notify`` gets the signal
        ``offered`` when it fits.

        A key has one reservation: a request with other amounts resizes it in place, and
        ``permanent`` moves it, once for each reservation that it ``replaces``. The successor is
        returned only when nothing is left of a predecessor on the same machine.

        Raise RefusedError for a requirement that no machine could ever satisfy: a retry is of no
        use. Any other error may be retried. The call waits while the backend is busy, so callers
        set a timeout.
        """
        ...

    async def release(self, request: ReleaseInput) -> ReleaseResult:
        """Release a key's reservation and waiting requirement; its machine then kills the tasks and
        deletes the volumes (``destroy``). With a reservation's id, release that reservation only
        and keep one that replaced it. A key without reservation is no error.

        The answer may come before the machine has destroyed it: ``destroyed`` is then false, and
        another call continues to wait. ``destroyed`` is true with an ``agent`` if that agent is not
        alive: it destroys when it is back. Until then the resources stay reserved.
        """
        ...

    async def reconcile(self, pool: str, report: OwnersReport) -> Reconciled:
        """Release the reservations whose owner has ended, and those that their owner does not name
        if the workflow that requested them last is the owner or has ended; return their keys.
        Owners that the report does not mention keep all. The report may be as old as the grace
        period of the pool: reservations that were made or requested since then are kept."""
        ...


class Machine(Protocol):
    """Runs tasks. The statuses of a task have increasing sequences, are sent as the signal
    ``task_statuses`` to the workflow ``LaunchInput.report_to`` in that order, at least once each,
    and name the machine and its queue."""

    async def launch(self, order: LaunchInput) -> TaskStatuses:
        """Start tasks on their reservation, and return the first status of each, in order.

        A task id is started once, even if it is launched twice at the same time, after it has ended
        or after a restart of the machine's process. A task that can't be started has the status
        ERROR or FAILED; a task that was killed before never starts.

        Raise errors that a retry may cure, as when the configuration can't be read.
        """
        ...

    async def kill(self, queue: str, order: KillInput) -> TaskStatuses:
        """Kill tasks (SIGTERM, after the grace period SIGKILL), and return their last statuses, in
        order, once they have ended. An ended task keeps its status. An id that was never launched
        here gets the status KILLED, and is never started afterwards."""
        ...


class Backend(Placement, Machine, Protocol):
    """All five verbs."""
