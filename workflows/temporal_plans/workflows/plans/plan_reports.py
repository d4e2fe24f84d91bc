"""Reports of a plan to its service: changes of its status, and its end."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from temporalio import workflow

from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import details
from temporal_plans.messages.plans import OwnerContext, PlanReport
from temporal_plans.workflows.mechanics.background import Background
from temporal_plans.workflows.mechanics.handlers import send_signal, wait_or_timeout
from temporal_plans.workflows.plans.revisions import Revisions

REPORT_INTERVAL = timedelta(milliseconds=300)
"""The shortest time between two reports."""


class _Summary(NamedTuple):
    """The fields whose change is reported. Only a standing plan reports phases and revisions, and
    only an owner that follows it hears of a rest."""

    status: Status
    incomplete: tuple[str, ...] = ()
    revision: int = 0
    resting: bool = False
    stopped: bool = False


class PlanReports:
    """The reports of one plan. A plan without a service only updates its details in Temporal's
    UI."""

    def __init__(
        self, board: PlanBoard, revisions: Revisions, context: OwnerContext | None
    ) -> None:
        self._board = board
        self._revisions = revisions
        self._context = context
        self._last_reported: _Summary | None = None
        self._not_before = workflow.now()
        self._send_lock = asyncio.Lock()

    def reset(self) -> None:
        """Report the current state again: the last report is out of date."""
        self._last_reported = None

    async def run(self, task: Background) -> None:
        """Send a report after each change, until ``task`` is over.

        COMPLETE is reported only for a standing plan: of another plan it is the end, after which no
        report may say that the plan is open.
        """
        while True:
            await workflow.wait_condition(lambda: task.over or self._has_changed())
            early = self._not_before - workflow.now()
            if early > timedelta(0):
                await wait_or_timeout(lambda: task.over or self._board.halted, early)
            if task.over:
                return
            if not self._has_changed():  # it has completed, or changed back
                continue
            self._last_reported = self._summary()
            workflow.set_current_details(details(self._board))
            if self._context is not None:
                await self._send(self._last_reported, open=True)
                self._not_before = workflow.now() + REPORT_INTERVAL

    async def end(self, *, superseded: bool) -> None:
        """Send the last report, with the forced steps."""
        await self._send(self._summary(), open=False, superseded=superseded)

    def _has_changed(self) -> bool:
        ends = self._board.complete and not self._board.standing
        return not ends and self._summary() != self._last_reported

    def _summary(self) -> _Summary:
        board = self._board
        summary = _Summary(board.status)
        if board.standing:
            summary = _Summary(board.status, self._revisions.incomplete, self._revisions.number)
        if self._context is None or not self._context.follows_rest:
            return summary
        return summary._replace(resting=board.resting, stopped=board.is_stopped)

    async def _send(self, summary: _Summary, *, open: bool, superseded: bool = False) -> None:
        if self._context is None:
            return
        async with self._send_lock:  # concurrent signals may arrive in another order
            report = PlanReport(
                plan=self._board.spec.name,
                run=self._context.run,
                starter=self._context.starter,
                workflow_id=workflow.info().workflow_id,
                status=summary.status,
                open=open,
                superseded=superseded,
                incomplete=summary.incomplete,
                revision=summary.revision,
                run_id=workflow.info().run_id,
                forced=() if open else self._board.forced,
                resting=self._board.resting,
                stopped=self._board.is_stopped,
            )
            await send_signal(self._context.workflow_id, "plan_changed", report)
