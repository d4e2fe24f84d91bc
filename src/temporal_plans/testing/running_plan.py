"""A plan that a test started: waits for its states, and commands."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from temporal_plans.client.errors import StandsStill, WorkerUnreachable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.plans.commands import Command, Outcome, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.values.names import suggestion
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView

Child = TypeVar("Child")

_POLL_INTERVAL = 0.02
"""Seconds between two queries."""


class NotReached(AssertionError):
    """The awaited state was not reached in time; the message shows the plan's tree, and the
    workflows that stand still because their workflow task fails (``stuck``).

    ``run`` is None for a plan whose own workflow task fails, so that it can't answer.
    """

    def __init__(
        self, expected: str, run: PlanRun | None, stuck: Sequence[StuckWorkflow] = ()
    ) -> None:
        lines = [f"waited for {expected}", *(one.in_full for one in stuck)]
        if run is not None:
            lines.append(f"its workflow {run.cut_short or 'has ended'}" if run.ended else "")
            lines += [run.why, *_lines(run.view)]
        super().__init__("\n".join(filter(None, lines)))
        self.run = run
        self.stuck = tuple(stuck)


@dataclass(frozen=True)
class RunningPlan:
    """A plan by its workflow ``id``. ``timeout`` limits every wait without a timeout of its own."""

    id: str
    plans: PlansClient
    timeout: timedelta

    async def look(self) -> PlanRun:
        """Return the plan's current run, open or ended. Raises Unreadable if it could not start."""
        return await self.plans.show(self.id)

    async def view(self) -> PlanView:
        """Return the plan's current tree; see ``look``."""
        return (await self.look()).view

    async def until(
        self,
        condition: Status | Callable[[PlanView], bool],
        *,
        phase: str = "",
        step: str = "",
        timeout: timedelta | None = None,
    ) -> PlanView:
        """Return the first view in which the plan, a phase or a step of it has this status, or in
        which your condition is true.

        Raises NotReached after ``timeout``, or when the plan's workflow ends before; LookupError
        for names that the plan does not have; WorkerUnreachable when no worker answered.
        """
        if callable(condition):
            holds, expected = condition, "a condition"
        else:
            holds = _has(condition, phase, step)
            expected = f"{condition} of {'/'.join(filter(None, [self.id, phase, step]))}"
        run = await self._until(lambda run: holds(run.view), expected, timeout)
        return run.view

    async def at_rest(self, *, timeout: timedelta | None = None) -> PlanRun:
        """Wait until nothing more happens without a command, and return the plan: COMPLETE, in
        ERROR, or its workflow ended.

        A plan that waits for an operator's continue is not at rest. Raises NotReached.
        """
        return await self._until(lambda run: run.at_rest, "its end", timeout)

    async def ended(self, *, timeout: timedelta | None = None) -> PlanRun:
        """Wait until its workflow has ended, in any way, and return the plan. Raises NotReached."""
        return await self._until(lambda run: run.ended is not None, "its end", timeout)

    async def _until(
        self, holds: Callable[[PlanRun], bool], expected: str, timeout: timedelta | None
    ) -> PlanRun:
        clock = asyncio.get_running_loop()
        end = clock.time() + (timeout or self.timeout).total_seconds()
        while True:
            try:
                run = await self.look()
            except StandsStill as error:
                if clock.time() > end:
                    raise NotReached(expected, None, [error.stuck]) from error
                await asyncio.sleep(_POLL_INTERVAL)
                continue
            except WorkerUnreachable:  # the worker is being restarted
                if clock.time() > end:
                    raise
                continue
            if holds(run):
                return run
            if run.ended:
                raise NotReached(expected, run)
            if clock.time() > end:
                raise NotReached(expected, run, await self.plans.stuck(self.id))
            await asyncio.sleep(_POLL_INTERVAL)

    # --- commands, as an operator gives them; each raises Refused with the plan's reason ---

    async def command(
        self,
        verb: Verb,
        *,
        phase: str = "",
        step: str = "",
        reason: str = "",
        parameters: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> Outcome:
        command = Command(
            phase=phase,
            step=step,
            reason=reason,
            by="test",
            parameters=dict(parameters or {}),
            force=force,
        )
        return await self.plans.command(self.id, verb, command)

    async def proceed(self, *, phase: str = "", step: str = "", reason: str = "") -> Outcome:
        """Send the command continue: approve, open the next canary gate, or end an interrupt."""
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
            raise LookupError(f"phase: missing for step {step!r}; pass phase as well")
        return view
    found = _find(phase, {child.name: child for child in view.phases}, "phase")
    if not step:
        return found
    return _find(step, {child.name: child for child in found.steps}, "step")


def _find(name: str, children: Mapping[str, Child], noun: str) -> Child:
    if name not in children:
        raise LookupError(f"{noun}: the plan has no {noun} {name!r}; {suggestion(name, children)}")
    return children[name]


def _lines(view: PlanView) -> Iterator[str]:
    yield f"{view.name} ({view.strategy}) {view.status}"
    for phase in view.phases:
        yield f"  {phase.name} ({phase.strategy}) {phase.status}"
        for step in phase.steps:
            detail = "; ".join([*filter(None, [step.message]), *step.errors])
            yield f"    {step.name} {step.status}{f': {detail}' if detail else ''}"
