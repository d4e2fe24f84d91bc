"""Running a command's asynchronous part: connect, ask, and end on time."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from temporal_plans.cli.core_lines import silent_runtime
from temporal_plans.cli.flags import ConnectionFlags
from temporal_plans.client.connection import connect
from temporal_plans.client.plans_client import PlansClient

Answer = TypeVar("Answer")


def ask(flags: ConnectionFlags, question: Callable[[PlansClient], Awaitable[Answer]]) -> Answer:
    """Connect as the flags say and put the question; its answer."""

    async def asked() -> Answer:
        client = await connect(flags.connection(), runtime=silent_runtime())
        return await question(PlansClient(client))

    return asyncio.run(asked())


def ask_until_interrupted(
    flags: ConnectionFlags,
    question: Callable[[PlansClient], Awaitable[int]],
    *,
    interrupted: int = 1,
) -> int:
    """The same for one that may be left by Ctrl-C: then the exit code ``interrupted``."""
    try:
        return ask(flags, question)
    except KeyboardInterrupt:
        return interrupted


@contextlib.asynccontextmanager
async def stop_signal(front: int | None = None) -> AsyncGenerator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set. The second one of either ends the process at once.

    The end of the ``front`` process (``cli.front``) sets it, too, and never more than that.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stopping() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    def abandoned() -> None:
        stop.set()
        if front is not None:
            loop.remove_reader(front)

    for number in signals:
        loop.add_signal_handler(number, stopping)
    if front is not None:
        loop.add_reader(front, abandoned)
    try:
        yield stop
    finally:
        if front is not None:
            loop.remove_reader(front)
        for number in signals:
            loop.remove_signal_handler(number)
