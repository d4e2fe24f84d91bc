"""Starts the health and readiness checks of an agent's tasks, and acts on their results."""

import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any

from temporal_plans.activities.agent.host.agent_task import AgentTask
from temporal_plans.activities.agent.host.records import KillRecord, LaunchRecord
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_reports import StatusReports
from temporal_plans.activities.agent.sandbox.checks import (
    run_check,
    wait_until_ready,
    wait_until_unhealthy,
)
from temporal_plans.activities.agent.sandbox.shell import SH, usable_shell
from temporal_plans.activities.agent.supervisor.supervision import (
    OrphanSpecUnavailable,
    RunState,
    ShimSpec,
    age_of,
    read_spec,
    run_state_of,
    spec_of_orphan,
    start_of,
)
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.tasks.statuses import TaskState

_log = logging.getLogger(__name__)

Monitor = Callable[[AgentTask, Coroutine[Any, Any, None], str], None]
"""Runs something, under a name, until the task has ended."""

Kill = Callable[[AgentTask, KillRecord], None]
"""Kills a task in the background."""


class TaskChecks:
    """The checks of one agent's tasks."""

    def __init__(
        self, settings: AgentSettings, reports: StatusReports, monitor: Monitor, kill: Kill
    ) -> None:
        self._settings = settings
        self._reports = reports
        self._monitor = monitor
        self._kill = kill

    def start(self, task: AgentTask) -> None:
        record = task.record
        if task.has_ended or not task.has_checks:
            return
        if (started := start_of(task.directory)) is None:
            return
        supervisor = task.directory.supervisor()
        spec = read_spec(supervisor) if supervisor else None
        if spec is None:
            if run_state_of(task.directory) is not RunState.ORPHANED:
                return  # it has just ended
            try:
                shell = usable_shell(record.shell, self._settings.shell) or SH
                spec = spec_of_orphan(task.directory, started, record, shell)
            except OrphanSpecUnavailable as problem:
                _log.warning(
                    "%s has lost its supervisor and its checks: %s", record.task_id, problem
                )
                return
        task.redactor = Redactor(map(os.fsencode, spec.hidden))
        age = age_of(started)
        if record.health_check is not None:
            self._monitor(task, self._watch_health(task, record, spec, age), "health")
        if record.readiness_check is not None and not (task.latest and task.latest.ready):
            self._monitor(task, self._watch_readiness(task, record, spec, age), "readiness")

    async def _watch_health(
        self, task: AgentTask, record: LaunchRecord, spec: ShimSpec, age: float
    ) -> None:
        check = record.health_check
        assert check is not None
        reason = await wait_until_unhealthy(
            check, lambda: run_check(check.cmd, spec, check.timeout), age
        )
        self._kill(task, KillRecord(grace=record.grace, state=TaskState.FAILED, reason=reason))

    async def _watch_readiness(
        self, task: AgentTask, record: LaunchRecord, spec: ShimSpec, age: float
    ) -> None:
        check = record.readiness_check
        assert check is not None

        async def report(problem: str) -> None:
            await self._reports.report(task, TaskState.RUNNING, problem, ready=False)

        await wait_until_ready(
            check, lambda: run_check(check.cmd, spec, check.timeout), age, report
        )
        await self._reports.report(task, TaskState.RUNNING, "ready", ready=True)
