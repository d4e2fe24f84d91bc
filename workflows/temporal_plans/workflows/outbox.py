"""What an entity has yet to tell other workflows, one signal in flight to each."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from temporal_plans.messages.service import Message, Unsent
from temporal_plans.workflows.handlers import tell


class Outbox:
    """Messages leave in order, per receiver. One to a workflow that is over is dropped: whoever
    takes its work up asks again.

    A message stays until it is told, so that what an entity's run leaves is sent by the next one,
    at the worst twice: ``unsent`` is what the run before left. ``on_sent`` is called when nothing
    more is on its way to some receiver.
    """

    def __init__(
        self, unsent: Iterable[Unsent] = (), on_sent: Callable[[], None] = lambda: None
    ) -> None:
        self._queues: dict[str, list[Unsent]] = defaultdict(list)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()
        self._on_sent = on_sent
        self._closed = False
        for message in unsent:
            self._queues[message.receiver].append(message)

    @property
    def empty(self) -> bool:
        """Whether nothing is left to tell."""
        return not self._queues

    def put(self, receiver: str, signal: str, message: Message) -> None:
        """Tell it, after all that the receiver is still to be told."""
        self._queues[receiver].append(Unsent(receiver=receiver, signal=signal, message=message))
        self._start(receiver)

    def sending(self, receiver: str) -> bool:
        """Whether a signal to it is on its way."""
        return receiver in self._sending

    def hold(self, receiver: str) -> None:
        """It is about to be started: what it is told waits for that, or would be told nobody."""
        self._held.add(receiver)

    def let(self, receiver: str) -> None:
        """It is there now."""
        self._held.discard(receiver)
        if receiver in self._queues:
            self._start(receiver)

    def forget(self, receiver: str) -> None:
        """It is over: what waits for it is not for the next one under its id."""
        if receiver in self._queues:
            del self._queues[receiver][1 if receiver in self._sending else 0 :]
            if receiver not in self._sending:
                del self._queues[receiver]

    def resume(self) -> None:
        """Send what the run before left."""
        for receiver in list(self._queues):
            self._start(receiver)

    def close(self) -> tuple[Unsent, ...]:
        """Send no more; what is left, with the messages whose signal is in flight."""
        self._closed = True
        return tuple(message for queue in self._queues.values() for message in queue)

    def _start(self, receiver: str) -> None:
        if receiver not in self._sending and receiver not in self._held:
            self._sending[receiver] = asyncio.create_task(self._send(receiver))

    async def _send(self, receiver: str) -> None:
        queue = self._queues[receiver]
        while queue and not self._closed and receiver not in self._held:
            await tell(receiver, queue[0].signal, queue[0].message)
            if not self._closed:
                queue.pop(0)
        if not queue:
            del self._queues[receiver]
        del self._sending[receiver]
        self._on_sent()
