"""A plan that was started in a test: waiting for what it does, and telling it what to do."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporal_plans.client.errors import WorkerUnreachable
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.names import suggestion
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import PhaseView, PlanView, StepView

Child = TypeVar("Child")

_PACE = 0.02
"""Seconds between two looks."""


class NotReached(AssertionError):
    """What a test waited for did not come; the message shows the plan's tree as it stood."""

    def __init__(self, wanted: str, run: PlanRun) -> None:
        ended = f"its workflow {run.cut_short or 'has ended'}" if run.ended else ""
        tree = "\n".join(_lines(run.view))
        super().__init__("\n".join(filter(None, [f"waited for {wanted}", ended, run.why, tree])))
        self.run = run


@dataclass(frozen=True)
class RunningPlan:
    """A plan by its workflow ``id``. ``timeout`` bounds every wait that does not say its own."""

    id: str
    plans: PlansClient
    timeout: timedelta

    async def look(self) -> PlanRun:
        """The plan as it is now, open or ended. Raises Unreadable for one that could not begin."""
        return await self.plans.show(self.id)

    async def view(self) -> PlanView:
        """Its tree as it is now; see ``look``."""
        return (await self.look()).view

    async def until(
        self,
        condition: Status | Callable[[PlanView], bool],
        *,
        phase: str = "",
        step: str = "",
        timeout: timedelta | None = None,
    ) -> PlanView:
        """The first view in which the plan, a phase or a step of it has this status, or in which a
        condition of your own is true.

        Raises NotReached after ``timeout``, or when the plan's workflow ends before; LookupError
        for names that the plan does not have; WorkerUnreachable when nothing was heard of it.
        """
        if callable(condition):
            holds, wanted = condition, "a condition"
        else:
            holds = _has(condition, phase, step)
            wanted = f"{condition} of {'/'.join(filter(None, [self.id, phase, step]))}"
        run = await self._until(lambda run: holds(run.view), wanted, timeout)
        return run.view

    async def at_rest(self, *, timeout: timedelta | None = None) -> PlanRun:
        """The plan once nothing more happens by itself: COMPLETE, in ERROR, or its workflow ended.

        A plan that waits for somebody's continue is not at rest. Raises NotReached.
        """
        return await self._until(lambda run: run.at_rest, "its end", timeout)

    async def ended(self, *, timeout: timedelta | None = None) -> PlanRun:
        """The plan once its workflow has ended, in whatever way. Raises NotReached."""
        return await self._until(lambda run: run.ended is not None, "its end", timeout)

    async def _until(
        self, holds: Callable[[PlanRun], bool], wanted: str, timeout: timedelta | None
    ) -> PlanRun:
        clock = asyncio.get_running_loop()
        end = clock.time() + (timeout or self.timeout).total_seconds()
        while True:
            try:
                run = await self.look()
            except WorkerUnreachable:  # a worker that is being restarted
                if clock.time() > end:
                    raise
                continue
            if holds(run):
                return run
            if run.ended or clock.time() > end:
                raise NotReached(wanted, run)
            await asyncio.sleep(_PACE)

    # --- commands, as an operator gives them; each raises Refused with the plan's reason ---

    async def command(
        self,
        verb: Verb,
        *,
        phase: str = "",
        step: str = "",
        reason: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> Outcome:
        command = Command(
            phase=phase, step=step, reason=reason, by="test", parameters=dict(parameters or {})
        )
        return await self.plans.command(self.id, verb, command)

    async def proceed(self, *, phase: str = "", step: str = "", reason: str = "") -> Outcome:
        """The command continue: approves, opens the next canary gate, or lifts an interrupt."""
        return await self.command(Verb.CONTINUE, phase=phase, step=step, reason=reason)

    async def interrupt(self, *, phase: str = "", step: str = "", reason: str = "") -> Outcome:
        return await self.command(Verb.INTERRUPT, phase=phase, step=step, reason=reason)

    async def restart(self, *, phase: str = "", step: str = "", reason: str = "") -> Outcome:
        return await self.command(Verb.RESTART, phase=phase, step=step, reason=reason)

    async def force_complete(self, *, phase: str = "", step: str = "", reason: str = "") -> Outcome:
        return await self.command(Verb.FORCE_COMPLETE, phase=phase, step=step, reason=reason)

    async def stop(self, *, reason: str = "") -> Outcome:
        return await self.command(Verb.STOP, reason=reason)


def _has(status: Status, phase: str, step: str) -> Callable[[PlanView], bool]:
    return lambda view: _element(view, phase, step).status is status


def _element(view: PlanView, phase: str, step: str) -> PlanView | PhaseView | StepView:
    if not phase:
        if step:
            raise LookupError(f"step {step!r} of which phase? Give phase too")
        return view
    found = _named(phase, {child.name: child for child in view.phases}, "phase")
    if not step:
        return found
    return _named(step, {child.name: child for child in found.steps}, "step")


def _named(name: str, children: Mapping[str, Child], what: str) -> Child:
    if name not in children:
        raise LookupError(f"there is no {what} {name!r}; {suggestion(name, children)}")
    return children[name]


def _lines(view: PlanView) -> Iterator[str]:
    yield f"{view.name} ({view.strategy}) {view.status}"
    for phase in view.phases:
        yield f"  {phase.name} ({phase.strategy}) {phase.status}"
        for step in phase.steps:
            said = "; ".join([*filter(None, [step.message]), *step.errors])
            yield f"    {step.name} {step.status}{f': {said}' if said else ''}"
