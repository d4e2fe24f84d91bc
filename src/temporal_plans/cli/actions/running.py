"""The asynchronous part of a command: connect, call the client, stop on signals."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from temporal_plans.cli.inputs.flags import ConnectionFlags

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient

Answer = TypeVar("Answer")


def call_client(
    flags: ConnectionFlags, operation: Callable[["PlansClient"], Awaitable[Answer]]
) -> Answer:
    """Connect as the flags say and call ``operation`` with the client; return its answer."""

    async def connected() -> Answer:
        return await operation(await connected_client(flags))

    return asyncio.run(connected())


async def connected_client(flags: ConnectionFlags) -> "PlansClient":
    """Return a client that is connected as the flags say."""
    # A worker and an agent, which use this module, too, need no client's verbs.
    from temporal_plans.cli.processes.core_lines import silent_runtime
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.temporal.connection import connect

    return PlansClient(await connect(flags.connection(), runtime=silent_runtime()))


def call_client_until_interrupted(
    flags: ConnectionFlags,
    operation: Callable[["PlansClient"], Awaitable[int]],
    *,
    interrupted: int = 1,
) -> int:
    """The same; Ctrl-C ends it with the exit code ``interrupted``."""
    try:
        return call_client(flags, operation)
    except KeyboardInterrupt:
        return interrupted


@contextlib.asynccontextmanager
async def stop_signal(proxy: int | None = None) -> AsyncGenerator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set. The second signal ends the process at once.

    The end of the ``proxy`` process (``signal_proxy``) sets the event, too, and does nothing else.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def on_signal() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)

    def on_proxy_end() -> None:
        stop.set()
        if proxy is not None:
            loop.remove_reader(proxy)

    for number in signals:
        loop.add_signal_handler(number, on_signal)
    if proxy is not None:
        loop.add_reader(proxy, on_proxy_end)
    try:
        yield stop
    finally:
        if proxy is not None:
            loop.remove_reader(proxy)
        for number in signals:
            loop.remove_signal_handler(number)
