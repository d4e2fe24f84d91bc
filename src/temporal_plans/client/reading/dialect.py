"""A plan as JSON in the ``/v1/plans`` dialect (behaviour 10.2): the dialect's keys, and more."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_jsonable_python

from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView


def plan_body(
    run: PlanRun, left: timedelta | None = None, stuck: Sequence[StuckWorkflow] = ()
) -> dict[str, Any]:
    """Return the body of GET /v1/plans/{plan}. ``left`` is the expected time until COMPLETE;
    ``stuck`` are the plan's workflows whose workflow task fails."""
    view: PlanView = run.view
    return {
        "phases": [_phase(phase) for phase in view.phases],
        "errors": list(view.errors),
        "strategy": view.strategy,
        "status": str(view.status),
        "id": view.id,
        "name": view.name,
        "service": view.service,
        "parameters": view.parameters,
        "waiting": list(view.waiting),
        "started": _time(view.started),
        "finished": _time(view.finished),
        "ended": run.ended.value if run.ended else None,
        "expected_seconds_left": left.total_seconds() if left is not None else None,
        "stuck": [{"workflow": one.workflow_id, "reason": one.text} for one in stuck],
    }


def _phase(phase: PhaseView) -> dict[str, Any]:
    return {
        "id": phase.id,
        "name": phase.name,
        "steps": [_step(step) for step in phase.steps],
        "strategy": phase.strategy,
        "status": str(phase.status),
        "started": _time(phase.started),
        "finished": _time(phase.finished),
    }


def _step(step: StepView) -> dict[str, Any]:
    return {
        "id": step.id,
        "status": step.shown,
        "name": step.name,
        "message": f"{step.name} [{step.id}] with status: {step.shown}",
        "kind": step.kind,
        "reason": step.message,
        "errors": list(step.errors),
        "attempt": step.attempt,
        "forced": step.forced,
        "started": _time(step.started),
        "finished": _time(step.finished),
    }


def _time(moment: datetime | None) -> str | None:
    """Return a time as messages write it."""
    return to_jsonable_python(moment) if moment else None
