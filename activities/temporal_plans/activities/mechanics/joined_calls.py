"""Equal requests of many activities at once, sent as one."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from temporal_plans.activities.mechanics.shared_calls import SharedCalls

Item = TypeVar("Item")


class JoinedCalls(Generic[Item]):
    """Of each key one call is under way; all items that come meanwhile go with the next. A workflow
    takes few updates at once and refuses more: a hundred requests one by one would take turns to be
    refused until the last of them runs out of time."""

    def __init__(self) -> None:
        self._calls = SharedCalls[None]()
        self._waiting: dict[Hashable, list[Item]] = {}

    async def send(
        self, key: Hashable, item: Item, call: Callable[[Sequence[Item]], Awaitable[None]]
    ) -> None:
        """Return when a call with the item is over. Raises the errors of the call. A cancellation
        leaves the item in it."""
        self._waiting.setdefault(key, []).append(item)

        async def send_all() -> None:
            await call(self._waiting.pop(key))

        await self._calls.ask(key, send_all)
