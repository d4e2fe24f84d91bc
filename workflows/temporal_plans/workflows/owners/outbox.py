"""Signals that an entity has yet to send to other workflows."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from temporal_plans.messages.owners import Message, Unsent
from temporal_plans.workflows.mechanics.handlers import send_signal

SIGNALS_LIMIT = 1000
"""Signals in flight; the server takes 2,000 of one workflow, and refuses its tasks when there are
more."""


class Outbox:
    """Sends messages in order for each receiver, one signal in flight to each.

    A message to a workflow that has ended is dropped: its successor asks again. A message stays in
    the outbox until it is sent, so that the entity's next run sends what this one could not, in the
    worst case twice. ``unsent`` are the messages that the previous run left; ``on_sent`` is called
    when the queue of a receiver has been sent.
    """

    def __init__(
        self, unsent: Iterable[Unsent] = (), on_sent: Callable[[], None] = lambda: None
    ) -> None:
        self._queues: dict[str, list[Unsent]] = defaultdict(list)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()
        self._slots = asyncio.Semaphore(SIGNALS_LIMIT)
        self._on_sent = on_sent
        self._closed = False
        for message in unsent:
            self._queues[message.receiver].append(message)

    @property
    def empty(self) -> bool:
        """Whether no message is left to send."""
        return not self._queues

    def put(self, receiver: str, signal: str, message: Message) -> None:
        """Send a message after those that are queued for the receiver."""
        self._queues[receiver].append(Unsent(receiver=receiver, signal=signal, message=message))
        self._start(receiver)

    def sending(self, receiver: str) -> bool:
        """Whether a signal to the receiver is in flight."""
        return receiver in self._sending

    def hold(self, receiver: str) -> None:
        """Queue messages to a receiver that is about to be started: sent now, they get lost."""
        self._held.add(receiver)

    def release(self, receiver: str) -> None:
        """Send the queued messages to a receiver that was on hold and now runs."""
        self._held.discard(receiver)
        if receiver in self._queues:
            self._start(receiver)

    def discard(self, receiver: str) -> None:
        """Drop the messages to a receiver that has ended: they are not for its next run."""
        if receiver in self._queues:
            del self._queues[receiver][1 if receiver in self._sending else 0 :]
            if receiver not in self._sending:
                del self._queues[receiver]

    def resume(self) -> None:
        """Send the messages that the previous run left."""
        for receiver in list(self._queues):
            self._start(receiver)

    def close(self) -> tuple[Unsent, ...]:
        """Send nothing more. Return the messages left, including those in flight."""
        self._closed = True
        return tuple(message for queue in self._queues.values() for message in queue)

    def _start(self, receiver: str) -> None:
        if receiver not in self._sending and receiver not in self._held:
            self._sending[receiver] = asyncio.create_task(self._send(receiver))

    async def _send(self, receiver: str) -> None:
        queue = self._queues[receiver]
        while queue and not self._closed and receiver not in self._held:
            async with self._slots:
                await send_signal(receiver, queue[0].signal, queue[0].message)
            if not self._closed:
                queue.pop(0)
        if not queue:
            del self._queues[receiver]
        del self._sending[receiver]
        self._on_sent()
