"""Looks at the objects of an instance, while no plan changes them."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.messages.packages import (
    InstalledPackage,
    LookAtObjects,
    ObjectsReport,
    Observation,
)
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.mechanics.settings import engine_settings

_LOOK_TIMEOUT = timedelta(minutes=2)
"""How long a look may take, with the wait for a worker of the cluster."""


class ObjectWatch:
    """``last`` is what was seen last. ``changed`` is called when a look is over."""

    def __init__(self, last: Observation | None, changed: Callable[[], None]) -> None:
        self.last = last
        self._changed = changed
        self._looking = False
        self._soon = False

    def look_soon(self) -> None:
        """Look again as soon as no plan runs."""
        self._soon = True

    def tend(
        self, package: InstalledPackage, now: datetime, interval: timedelta | None = None
    ) -> datetime | None:
        """Begin a look if one is due; return the time of the next one. ``interval``: the time
        between looks, None for that of the worker's settings."""
        if self._looking:
            return None
        interval = interval or engine_settings().look_interval
        due = self.last.at + interval if self.last else now
        if due > now and not self._soon:
            return due
        self._looking, self._soon = True, False
        asyncio.create_task(self._look(package))  # noqa: RUF006  # _looking
        return None

    async def _look(self, package: InstalledPackage) -> None:
        order = LookAtObjects(owner=workflow.info().workflow_id, package=package, notable=True)
        self.last = Observation(at=workflow.now(), report=await look(order))
        self._looking = False
        self._changed()


async def look(order: LookAtObjects) -> ObjectsReport:
    """Return what the worker of the cluster sees; a report with a problem when none answers."""
    try:
        report: ObjectsReport = await workflow.execute_activity(
            "look_at_objects",
            order,
            result_type=ObjectsReport,
            task_queue=cluster_queue(order.package.cluster),
            schedule_to_close_timeout=_LOOK_TIMEOUT,
            start_to_close_timeout=_LOOK_TIMEOUT,
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=RetryPolicy(maximum_attempts=2),
            summary=f"look at objects of {order.package.instance}",
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        text = f"no worker of cluster {order.package.cluster} answered: {typed_failure_text(error)}"
        return ObjectsReport(problem=shortened(text))
    return report
