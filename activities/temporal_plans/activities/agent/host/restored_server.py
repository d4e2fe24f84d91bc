"""The detection that Temporal was restored from a backup, so that services have forgotten what this
agent reported since."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from temporal_plans.messages.addresses import pool_id

_log = logging.getLogger(__name__)

_INTERVAL = 10.0  # seconds
_TIMEOUT = timedelta(seconds=5)

Age = tuple[datetime, int]
"""When the Pool's newest run was started, and the length of its history: it only ever grows."""


class RestoredServer:
    """Looks at the Pool regularly, which costs no history, and calls ``restored`` when the Pool is
    younger than it was."""

    def __init__(self, client: Client, pool: str, restored: Callable[[], None]) -> None:
        self._client = client
        self._pool = pool_id(pool)
        self._restored = restored
        self._oldest: Age | None = None

    async def detect(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                pool = self._client.get_workflow_handle(self._pool)
                found = await pool.describe(rpc_timeout=_TIMEOUT)
            except RPCError:
                pass  # no server answers, or the pool was terminated: a new pool watches this agent
            else:
                self.note((found.start_time, found.history_length))
            await asyncio.sleep(_INTERVAL)

    def note(self, age: Age) -> None:
        """Compare an age of the Pool with the one before."""
        if self._oldest is not None and age < self._oldest:
            _log.warning("%s was restored from a backup; all statuses are sent again", self._pool)
            self._restored()
        self._oldest = age
