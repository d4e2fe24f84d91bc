"""The leases of a phase: assets that its service grants to its steps (design 4)."""

import asyncio
from collections.abc import Iterable

from temporalio import workflow

from temporal_plans.domain.plans.leases import Lease
from temporal_plans.messages.plans import LeaseGrant, LeaseRequest, PhaseInput
from temporal_plans.workflows.mechanics.handlers import send_signal


class PhaseLeases:
    """Requests and returns assets in batches, one signal in flight.

    Signals are sent only by ``flush``: the assets that one step returns and the next step requests
    in the same turn are one message to the service, and cost one workflow task each.
    A phase without a service, and a step that launches no pod, needs no lease.
    """

    def __init__(self, input: PhaseInput, phase_id: str) -> None:
        self._input = input
        self._phase = phase_id
        self._held: set[int] = set(input.leased)
        self._requested: set[int] = set()
        self._wants: dict[int, Lease] = {}
        self._returns: set[int] = set()
        self._tickets: dict[int, int] = {}
        self._first_ticket = int(workflow.info().workflow_start_time.timestamp() * 1000)
        self._sender: asyncio.Task[None] | None = None

    @property
    def held(self) -> tuple[int, ...]:
        return tuple(sorted(self._held))

    def has(self, index: int) -> bool:
        """Whether the step holds its lease, or needs none."""
        return index in self._held or not self._needs(index)

    def request(self, indexes: Iterable[int]) -> None:
        """Request the leases of these steps, unless held or requested already."""
        for index in indexes:
            if not self.has(index) and index not in self._requested:
                self._requested.add(index)
                self._wants[index] = self._lease(index)

    def return_others(self, indexes: set[int]) -> None:
        """Return the leases of all other steps: other plans may need the assets."""
        for index in (self._held | self._requested) - indexes:
            self.return_lease(index)

    def return_lease(self, index: int) -> None:
        """Return a step's lease, or withdraw its request."""
        if index in self._held or index in self._requested:
            self._held.discard(index)
            self._requested.discard(index)
            self._wants.pop(index, None)
            self._tickets[index] = self._ticket(index) + 1
            self._returns.add(index)

    def apply_grant(self, grant: LeaseGrant) -> dict[int, str]:
        """Apply a grant. Return the steps that still wait, with the holder of their asset."""
        for index, ticket in grant.granted.items():
            if index in self._requested and ticket == self._ticket(index):
                self._requested.discard(index)
                self._held.add(index)
            elif index not in self._requested and index not in self._held:
                self._returns.add(index)  # requested by an earlier run
        return {i: holder for i, holder in grant.held.items() if i in self._requested}

    def flush(self) -> None:
        """Send the requests and returns since the last flush."""
        if (self._wants or self._returns) and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send())

    async def end(self, *, keep: bool) -> None:
        """End the leases: return all, or keep them for the phase's next run."""
        context = self._input.context
        if context is None:
            return
        if keep:
            self.flush()
        else:
            self._wants, self._returns = {}, set()  # the last message covers them
        if self._sender is not None:
            await self._sender
        if keep:
            return
        self._held.clear()
        if any(self._needs(i) for i in range(len(self._input.spec.steps))):
            await send_signal(
                context.workflow_id, "leases", LeaseRequest(phase=self._phase, ended=True)
            )

    def _needs(self, index: int) -> bool:
        if self._input.context is None:
            return False
        return self._input.spec.steps[index].work.asset is not None

    def _lease(self, index: int) -> Lease:
        context, asset = self._input.context, self._input.spec.steps[index].work.asset
        assert context is not None
        assert asset is not None
        return Lease(
            plan=context.plan,
            phase=self._phase,
            step=index,
            pod=asset.pod,
            index=asset.number,
            tasks=asset.tasks,
            priority=context.priority,
            ticket=self._ticket(index),
        )

    def _ticket(self, index: int) -> int:
        """Return the ticket of a step's request. No earlier run of the phase had it, so a grant to
        an earlier run is not taken for a grant to this one."""
        return self._tickets.get(index, self._first_ticket)

    async def _send(self) -> None:
        context = self._input.context
        assert context is not None
        while self._wants or self._returns:
            request = LeaseRequest(
                phase=self._phase,
                wants=tuple(self._wants.values()),
                returns=tuple(sorted(self._returns)),
            )
            self._wants, self._returns = {}, set()
            await send_signal(context.workflow_id, "leases", request)
