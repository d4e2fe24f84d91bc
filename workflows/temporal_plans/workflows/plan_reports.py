"""What a plan tells its service: its status when it changes, and its end."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from temporalio import workflow

from temporal_plans.domain.board import PlanBoard
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import ServiceContext
from temporal_plans.messages.service import PlanReport
from temporal_plans.workflows.background import Background
from temporal_plans.workflows.handlers import tell, wait_or_timeout
from temporal_plans.workflows.revisions import Revisions
from temporal_plans.workflows.views import details

PACE = timedelta(milliseconds=300)
"""The least time between two reports."""


class _News(NamedTuple):
    """What a service hears of when it changes. Of phases and revisions it hears from a standing
    plan only."""

    status: Status
    incomplete: tuple[str, ...] = ()
    revision: int = 0


class PlanReports:
    """Reports of one plan. One without a service has nobody to tell, and its details in Temporal's
    own UI are kept up nevertheless."""

    def __init__(
        self, board: PlanBoard, revisions: Revisions, context: ServiceContext | None
    ) -> None:
        self._board = board
        self._revisions = revisions
        self._context = context
        self._told: _News | None = None
        self._not_before = workflow.now()
        self._telling = asyncio.Lock()

    def begin_anew(self) -> None:
        """Say again how things are: what was said last is no longer so."""
        self._told = None

    async def run(self, task: Background) -> None:
        """Not that a plan is complete that does not stand: that is its end, after which nothing may
        call it open."""
        while True:
            await workflow.wait_condition(lambda: task.over or self._has_news())
            early = self._not_before - workflow.now()
            if early > timedelta(0):
                await wait_or_timeout(lambda: task.over, early)
            if task.over:
                return
            if not self._has_news():  # it is complete by now, or as it was
                continue
            self._told = self._news()
            workflow.set_current_details(details(self._board))
            if self._context is not None:
                await self._tell(self._told, open=True)
                self._not_before = workflow.now() + PACE

    async def end(self, *, superseded: bool) -> None:
        """The last report; what was forced is told with it."""
        await self._tell(self._news(), open=False, superseded=superseded)

    def _has_news(self) -> bool:
        ends = self._board.complete and not self._board.standing
        return not ends and self._news() != self._told

    def _news(self) -> _News:
        if not self._board.standing:
            return _News(self._board.status)
        return _News(self._board.status, self._revisions.incomplete, self._revisions.number)

    async def _tell(self, news: _News, *, open: bool, superseded: bool = False) -> None:
        if self._context is None:
            return
        async with self._telling:  # signals in flight at the same time may change places
            report = PlanReport(
                plan=self._board.spec.name,
                run=self._context.run,
                starter=self._context.starter,
                workflow_id=workflow.info().workflow_id,
                status=news.status,
                open=open,
                superseded=superseded,
                incomplete=news.incomplete,
                revision=news.revision,
                run_id=workflow.info().run_id,
                forced=() if open else self._board.forced,
            )
            await tell(self._context.workflow_id, "plan_changed", report)
