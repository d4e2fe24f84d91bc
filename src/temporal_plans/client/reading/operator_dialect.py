"""The status of an installed package as JSON in the form that its first users know: what was
installed, whether it is ready, and one entry a plan, with its newest run.

Its keys and values are wire data of the system that is followed. Times of starts and ends, and
attempts, are additions.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from temporal_plans.domain.packages.installation import Installation, PackageDefinition
from temporal_plans.domain.packages.plans import PackagePlan
from temporal_plans.domain.packages.readiness import Readiness
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView

NEVER_RUN = "NEVER_RUN"
PENDING = "PENDING"
IN_PROGRESS = "IN_PROGRESS"
ERROR = "ERROR"
FATAL_ERROR = "FATAL_ERROR"
COMPLETE = "COMPLETE"

_ENDED = (COMPLETE, FATAL_ERROR)

_STEPS: Mapping[Status, str] = {
    Status.COMPLETE: COMPLETE,
    Status.ERROR: FATAL_ERROR,
    Status.DELAYED: ERROR,
    Status.PENDING: PENDING,
}


class NewestRun(NamedTuple):
    """The newest run of a plan. ``uid`` identifies it; ``changed`` is the time of its last change.
    ``ended``: how it ended before it was complete ("stopped", "superseded"), empty otherwise."""

    view: PlanView
    uid: str = ""
    changed: datetime | None = None
    ended: str = ""


def status_body(
    installation: Installation,
    runs: Iterable[NewestRun],
    readiness: Readiness | None = None,
    *,
    name: str = "",
    deleting: datetime | None = None,
) -> dict[str, Any]:
    """Return an instance with its ``spec`` and ``status``. ``runs`` are the newest runs of all
    plans that ever ran; ``name`` is that of the service, by default the instance's; ``deleting`` is
    the time at which its uninstall began. Secret values are left out."""
    package = installation.package
    newest = {run.view.name: run for run in runs}
    metadata = {
        "name": name or installation.instance,
        "namespace": installation.namespace,
        "labels": {"kudo.dev/operator": package.name},
        **({"deletionTimestamp": _time(deleting)} if deleting else {}),
    }
    return {
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": metadata,
        "spec": {
            "operatorVersion": {"name": _version_name(package)},
            "parameters": {
                key: text
                for key, text in sorted(installation.given.items())
                if not installation.masked(key)
            },
            "planExecution": _execution(newest.values()),
        },
        "status": {
            "conditions": [] if readiness is None else [_condition(readiness)],
            "planStatus": _plan_statuses(package.plans, newest),
        },
    }


def _version_name(package: PackageDefinition) -> str:
    operator = package.operator
    parts = (operator.name, operator.app_version, operator.operator_version)
    return "-".join(part for part in parts if part)


def _execution(runs: Iterable[NewestRun]) -> dict[str, str]:
    """Return the plan that runs, the one that changed last if there are several; else nothing."""
    running = [run for run in runs if _plan_status(run) not in _ENDED]
    if not running:
        return {}
    run = max(running, key=lambda one: (one.changed is not None, one.changed, one.view.name))
    return {"planName": run.view.name, "uid": run.uid, "status": _plan_status(run)}


def _plan_statuses(
    plans: Mapping[str, PackagePlan], newest: Mapping[str, NewestRun]
) -> dict[str, Any]:
    """Return all plans by name: those of the package, and former ones that ran."""
    return {
        name: _plan(newest[name]) if name in newest else _never_run(name, plans[name])
        for name in sorted({*plans, *newest})
    }


def _never_run(name: str, plan: PackagePlan) -> dict[str, Any]:
    phases = [
        {
            "name": phase.name,
            "status": NEVER_RUN,
            "steps": [{"name": step.name, "status": NEVER_RUN} for step in phase.steps],
        }
        for phase in plan.phases
    ]
    return {
        "name": name,
        "uid": "",
        "status": NEVER_RUN,
        "lastUpdatedTimestamp": None,
        "phases": phases,
    }


def _plan(run: NewestRun) -> dict[str, Any]:
    view = run.view
    return {
        "name": view.name,
        "uid": run.uid,
        "status": _plan_status(run),
        **_message(_plan_message(run)),
        "lastUpdatedTimestamp": _time(run.changed),
        **_times(view),
        "phases": [_phase(phase) for phase in view.phases],
    }


def _plan_status(run: NewestRun) -> str:
    if run.view.status is Status.COMPLETE:
        return COMPLETE
    if run.ended or run.view.status is Status.ERROR:
        return FATAL_ERROR
    return _of_children([_phase_status(phase) for phase in run.view.phases])


def _plan_message(run: NewestRun) -> str:
    """Return why the plan is over, where no step says it."""
    if run.ended and run.view.status is not Status.COMPLETE:
        return run.ended
    steps = [step for phase in run.view.phases for step in phase.steps]
    if run.view.status is not Status.ERROR or any(step.status is Status.ERROR for step in steps):
        return ""
    return next(iter(run.view.errors), "")


def _phase(phase: PhaseView) -> dict[str, Any]:
    return {
        "name": phase.name,
        "status": _phase_status(phase),
        **_times(phase),
        "steps": [_step(step) for step in phase.steps],
    }


def _phase_status(phase: PhaseView) -> str:
    if phase.status is Status.COMPLETE:
        return COMPLETE
    return _of_children([_step_status(step) for step in phase.steps])


def _of_children(statuses: Sequence[str]) -> str:
    """Return the status of a parent that is not complete: it never reads ERROR."""
    if FATAL_ERROR in statuses:
        return FATAL_ERROR
    return PENDING if set(statuses) <= {PENDING} else IN_PROGRESS


def _step(step: StepView) -> dict[str, Any]:
    status = _step_status(step)
    return {
        "name": step.name,
        "status": status,
        **_message("" if status == COMPLETE else step.message or next(iter(step.errors), "")),
        **_times(step),
        **({"attempts": step.attempt} if step.attempt > 1 else {}),
    }


def _step_status(step: StepView) -> str:
    """Return the status of a step. One that waits for people has not begun, or is in progress."""
    if step.status is Status.WAITING:
        return IN_PROGRESS if step.started else PENDING
    return _STEPS.get(step.status, IN_PROGRESS)


def _condition(readiness: Readiness) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": readiness.status.value,
        "reason": readiness.reason.value,
        "message": readiness.message,
        "lastTransitionTime": _time(readiness.since),
    }


def _message(text: str) -> dict[str, str]:
    return {"message": text} if text else {}


def _times(view: PlanView | PhaseView | StepView) -> dict[str, Any]:
    times = {"startedAt": _time(view.started), "finishedAt": _time(view.finished)}
    return {key: text for key, text in times.items() if text}


def _time(moment: datetime | None) -> str | None:
    """Return a time to the second, as clusters write it."""
    return to_jsonable_python(moment.replace(microsecond=0)) if moment else None
