"""A plan in the JSON that clients of the ``/v1/plans`` dialect read (reference 10.2).

The keys of the reference are there with its meanings; keys of our own stand beside them.
"""

from datetime import datetime, timedelta
from typing import Any

from temporal_plans.client.plan_run import PlanRun
from temporal_plans.messages.plan import PhaseView, PlanView, StepView


def plan_body(run: PlanRun, left: timedelta | None = None) -> dict[str, Any]:
    """The body of GET /v1/plans/{plan}. ``left``: the expected time until it is COMPLETE."""
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
        "status": str(step.status),
        "name": step.name,
        "message": f"{step.name} [{step.id}] with status: {step.status}",
        "kind": step.kind,
        "reason": step.message,
        "errors": list(step.errors),
        "attempt": step.attempt,
        "forced": step.forced,
        "started": _time(step.started),
        "finished": _time(step.finished),
    }


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
