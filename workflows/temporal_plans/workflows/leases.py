"""A phase's side of leasing assets from its service (DESIGN 4)."""

import asyncio
from collections.abc import Iterable

from temporalio import workflow

from temporal_plans.domain.plan import PodWork
from temporal_plans.messages.plan import PhaseInput
from temporal_plans.messages.service import Lease, LeaseGrant, LeaseRequest
from temporal_plans.workflows.handlers import tell


class PhaseLeases:
    """Asks for many assets and gives many back with one signal, one signal in flight.

    Nothing is said before ``flush``: so what a step gives back and what the next one wants, as the
    strategy says in the same turn, are one message to the service and one task of each workflow.
    A phase without a service, and a step that launches no pod, needs none.
    """

    def __init__(self, input: PhaseInput, phase_id: str) -> None:
        self._input = input
        self._phase = phase_id
        self._held: set[int] = set(input.leased)
        self._asked: set[int] = set()
        self._wants: dict[int, Lease] = {}
        self._returns: set[int] = set()
        self._tickets: dict[int, int] = {}
        self._first_ticket = int(workflow.info().workflow_start_time.timestamp() * 1000)
        self._sender: asyncio.Task[None] | None = None

    @property
    def held(self) -> tuple[int, ...]:
        return tuple(sorted(self._held))

    def has(self, index: int) -> bool:
        """Whether the step may be worked on, as far as assets go."""
        return index in self._held or not self._needs(index)

    def want(self, indexes: Iterable[int]) -> None:
        """Ask for the assets of these steps, unless asked already."""
        for index in indexes:
            if not self.has(index) and index not in self._asked:
                self._asked.add(index)
                self._wants[index] = self._lease(index)

    def keep_only(self, indexes: set[int]) -> None:
        """Give back what is neither at work nor about to be: others may have it."""
        for index in (self._held | self._asked) - indexes:
            self.give_back(index)

    def give_back(self, index: int) -> None:
        if index in self._held or index in self._asked:
            self._held.discard(index)
            self._asked.discard(index)
            self._wants.pop(index, None)
            self._tickets[index] = self._ticket(index) + 1
            self._returns.add(index)

    def granted(self, grant: LeaseGrant) -> dict[int, str]:
        """Take in what the service says; the steps that still wait, and who holds their asset."""
        for index, ticket in grant.granted.items():
            if index in self._asked and ticket == self._ticket(index):
                self._asked.discard(index)
                self._held.add(index)
            elif index not in self._asked and index not in self._held:
                self._returns.add(index)  # an earlier run wanted it
        return {i: holder for i, holder in grant.held.items() if i in self._asked}

    def flush(self) -> None:
        """Say what is wanted and given back since the last time."""
        if (self._wants or self._returns) and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send())

    async def end(self, *, keep: bool) -> None:
        """The phase is over: give all back, or keep it for the phase's next run."""
        context = self._input.context
        if context is None:
            return
        if keep:
            self.flush()
        else:
            self._wants, self._returns = {}, set()  # what is said last covers them
        if self._sender is not None:
            await self._sender
        if keep:
            return
        self._held.clear()
        if any(self._needs(i) for i in range(len(self._input.spec.steps))):
            await tell(context.workflow_id, "leases", LeaseRequest(phase=self._phase, ended=True))

    def _needs(self, index: int) -> bool:
        if self._input.context is None:
            return False
        return isinstance(self._input.spec.steps[index].work, PodWork)

    def _lease(self, index: int) -> Lease:
        context, work = self._input.context, self._input.spec.steps[index].work
        assert context is not None
        assert isinstance(work, PodWork)
        return Lease(
            plan=context.plan,
            phase=self._phase,
            step=index,
            pod=work.pod,
            index=work.index,
            tasks=work.tasks,
            priority=context.priority,
            ticket=self._ticket(index),
        )

    def _ticket(self, index: int) -> int:
        """No earlier run of the phase had it: a grant that was meant for that one counts for
        nothing."""
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
            await tell(context.workflow_id, "leases", request)
