"""What an entity has yet to tell other workflows, one signal in flight to each."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from temporal_plans.messages.service import Message, Unsent
from temporal_plans.workflows.handlers import tell


class Outbox:
    """Messages leave in order, per receiver. One to a workflow that is over is dropped: whoever
    takes its work up asks again.

    A message stays until it is told, so that what an entity's run leaves is sent by the next one,
    at the worst twice: ``unsent`` is what the run before left.
    """

    def __init__(self, unsent: Iterable[Unsent] = ()) -> None:
        self._queues: dict[str, list[Unsent]] = defaultdict(list)
        self._sending: dict[str, asyncio.Task[None]] = {}
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

    def resume(self) -> None:
        """Send what the run before left."""
        for receiver in list(self._queues):
            self._start(receiver)

    def close(self) -> tuple[Unsent, ...]:
        """Send no more; what is left, with the messages whose signal is in flight."""
        self._closed = True
        return tuple(message for queue in self._queues.values() for message in queue)

    def _start(self, receiver: str) -> None:
        if receiver not in self._sending:
            self._sending[receiver] = asyncio.create_task(self._send(receiver))

    async def _send(self, receiver: str) -> None:
        queue = self._queues[receiver]
        while queue and not self._closed:
            await tell(receiver, queue[0].signal, queue[0].message)
            if not self._closed:
                queue.pop(0)
        if not queue:
            del self._queues[receiver]
        del self._sending[receiver]
