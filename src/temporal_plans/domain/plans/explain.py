"""Why an element is not moving, as a value (design 9).

The plan's board knows which elements wait for a continue, a predecessor, a back-off or another
plan. Why no agent fits is kept with the step as text; the pool gives the current ``refusals``.
"""

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from itertools import islice

from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.hint import Hint
from temporal_plans.domain.plans.plan import STEPS_AT_ONCE, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Refusal


class ElementQuery(CompactValue):
    """Argument of the query ``explain``; empty names mean the whole plan or phase."""

    phase: str = ""
    step: str = ""


class PendingWork(CompactValue):
    """An activity or a child workflow (``workflow_id``) that a step waits for.

    It has waited for a worker of ``task_queue`` ``since`` then, or a worker has started it.
    ``attempt`` is the current attempt, or the attempt that is due at ``next_attempt``;
    ``last_failure`` is the failure of the attempt before. ``last_poll`` is the time of the last
    poll of the queue, None without a poll for some minutes: then no worker runs, or all are at
    their limits. ``agent`` is the agent of the task queue, and ``agent_state`` its state in its
    pool when it is not alive; the client fills them in from the pools.
    """

    type: str
    workflow_id: str = ""
    task_queue: str = ""
    since: datetime | None = None
    started: bool = False
    worker: str = ""
    attempt: int = 1
    last_failure: str = ""
    next_attempt: datetime | None = None
    paused: bool = False
    last_poll: datetime | None = None
    agent: str = ""
    agent_state: str = ""

    def waits_for_a_worker(self, now: datetime) -> bool:
        """Whether it is due, and no worker has started it."""
        later = self.next_attempt is not None and self.next_attempt > now
        return not (self.started or self.paused or later)


class Explanation(CompactValue):
    """Why one element is not moving. ``pod`` is set when its requirement waits in a pool (then the
    client adds ``refusals``); ``waits_for`` names predecessors, which ``text`` lists as well;
    ``until`` is the end of a back-off. ``work`` is the work that it waits for, which the client
    adds for elements at work. ``remedy`` is the command that would move it, where a command would:
    the verb, then the names of the phase and the step, and ``--force`` where only a forced command
    is accepted. ``hints`` are other commands that help;
    ``tasks`` are the names of the tasks of the step's latest launch, ``attempt`` is its attempt,
    ``trace`` the traceback of its failure."""

    phase: str = ""
    step: str = ""
    status: Status
    cause: Cause
    text: str
    pod: str = ""
    refusals: tuple[Refusal, ...] = ()
    waits_for: tuple[str, ...] = ()
    until: datetime | None = None
    work: tuple[PendingWork, ...] = ()
    remedy: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    tasks: tuple[str, ...] = ()
    attempt: int = 0
    trace: str = ""


class Explanations(CompressibleValue):
    """Answer of the Plan's query ``explain``. ``cut_short`` is how the plan's workflow
    ended, if it ended before the plan was COMPLETE: "terminated" and the like."""

    status: Status
    explanations: tuple[Explanation, ...] = ()
    cut_short: str = ""


EXPLAINED_LIMIT = 500
"""Steps of a phase that are explained one by one: more are counted."""


class _PhaseFacts:
    """What the explanations of a phase's steps share, computed once."""

    def __init__(self, plan: PlanBoard, index: int) -> None:
        self.plan = plan
        self.index = index
        self.board = plan.phases[index]
        self.name = self.board.spec.name

    @cached_property
    def candidates(self) -> frozenset[int]:
        return frozenset(self.board.shown_candidates())

    @cached_property
    def is_interrupted(self) -> bool:
        return self.board.is_interrupted

    @cached_property
    def waits(self) -> str:
        return self.board.waits()

    @cached_property
    def at_work(self) -> int:
        return sum(map(_is_at_work, self.board.steps))

    @cached_property
    def incomplete(self) -> tuple[tuple[int, str], ...]:
        """Return index and name of the steps that are not complete."""
        steps = zip(self.board.spec.steps, self.board.steps, strict=True)
        return tuple((i, spec.name) for i, (spec, step) in enumerate(steps) if not step.complete)

    @cached_property
    def phases_before(self) -> tuple[str, ...]:
        """Return the phases that must be complete before this phase may begin; none for a phase
        that has begun, or is in error: its own steps explain that."""
        plan, index = self.plan, self.index
        if self.board.status is Status.ERROR or any(step.begun for step in self.board.steps):
            return ()
        if plan.interrupted or self.is_interrupted or index in plan.candidates():
            return ()
        wanted = self.board.spec.depends_on
        return tuple(
            phase.spec.name
            for i, phase in enumerate(plan.phases)
            if not phase.complete and (phase.spec.name in wanted if wanted else i < index)
        )

    def steps_before(self, index: int) -> tuple[str, ...]:
        """Return the first incomplete steps that its strategy puts before this step."""
        if index in self.candidates:
            return ()
        wanted = self.board.spec.steps[index].depends_on
        before = (n for i, n in self.incomplete if (n in wanted if wanted else i < index))
        return tuple(islice(before, 10))


def explain(board: PlanBoard, phase: int | None, step: int | None) -> Explanations:
    """Return one explanation for a step; for a phase or plan, one for each element that blocks it:
    of a phase at most ``EXPLAINED_LIMIT``, and one that counts the others."""
    if phase is None:
        return Explanations(status=board.status, explanations=tuple(_plan(board)))
    facts = _PhaseFacts(board, phase)
    if step is None:
        return Explanations(status=facts.board.status, explanations=tuple(_phase(facts)))
    answer = _step(facts, step)
    return Explanations(status=answer.status, explanations=(answer,))


def _plan(board: PlanBoard) -> Iterator[Explanation]:
    if board.complete:
        text = "the plan is complete"
        waits = board.standing and board.interrupted
        if board.standing:
            text = f"{text}, and is ready for new phases"
            if waits:
                text = f"{text}; it is interrupted, so they will wait for continue"
        remedy = (Verb.CONTINUE,) if waits else ()
        yield Explanation(status=Status.COMPLETE, cause=Cause.COMPLETE, text=text, remedy=remedy)
        return
    for fault in board.faults:
        yield Explanation(status=board.status, cause=Cause.ERROR, text=fault)
    if board.interrupted:
        yield Explanation(
            status=board.status,
            cause=Cause.CONTINUE,
            text="the plan is interrupted or was not started; start or continue it",
            remedy=(Verb.CONTINUE,),
        )
    if board.halted:
        text = f"nothing more begins (on-error: stop): {board.halt_reason}"
        yield Explanation(status=board.status, cause=Cause.HALTED, text=text)
    for index, phase in enumerate(board.phases):
        if phase.halted or not (phase.complete or board.halted):
            yield from _phase(_PhaseFacts(board, index))


def _phase(facts: _PhaseFacts) -> Iterator[Explanation]:
    phase, name = facts.board, facts.name
    if phase.complete:
        yield Explanation(
            phase=name, status=phase.status, cause=Cause.COMPLETE, text=f"phase {name} is complete"
        )
        return
    if facts.plan.halted and not phase.halted:
        yield Explanation(
            phase=name,
            status=phase.status,
            cause=Cause.HALTED,
            text=f"phase {name} waits (on-error: stop): {facts.plan.halt_reason}",
        )
        return
    if facts.waits:
        yield Explanation(
            phase=name,
            status=phase.status,
            cause=Cause.CONTINUE,
            text=facts.waits,
            remedy=(Verb.CONTINUE, name, *_only_approval(facts)),
        )
    if facts.phases_before:
        yield Explanation(
            phase=name,
            status=phase.status,
            cause=Cause.PREDECESSOR,
            text=f"phase {name} waits for phase {', '.join(facts.phases_before)}",
            waits_for=facts.phases_before,
        )
        return
    yield from _steps(facts)


def _steps(facts: _PhaseFacts) -> Iterator[Explanation]:
    """Yield the steps that are at work, in error, or next; of many, those in error first."""
    steps = facts.board.steps
    begun = (i for i, s in enumerate(steps) if s.begun or s.status is Status.ERROR)
    held_up = [i for i in sorted({*facts.candidates, *begun}) if not steps[i].complete]
    if len(held_up) > EXPLAINED_LIMIT:
        held_up.sort(key=lambda i: steps[i].status is not Status.ERROR)
    for index in held_up[:EXPLAINED_LIMIT]:
        yield _step(facts, index)
    if (more := len(held_up) - EXPLAINED_LIMIT) > 0:
        yield Explanation(
            phase=facts.name,
            status=facts.board.status,
            cause=Cause.RUNNING,
            text=f"{more} more steps of phase {facts.name} are not complete; ask for one by name",
        )


def _step(facts: _PhaseFacts, index: int) -> Explanation:
    spec, state = facts.board.spec.steps[index], facts.board.steps[index]
    cause, text, waits_for = _cause(facts, index)
    return Explanation(
        phase=facts.name,
        step=spec.name,
        status=state.shown,
        cause=cause,
        text=f"step {spec.name} {text}",
        pod=_pod(spec) if cause is Cause.OFFER else "",
        waits_for=waits_for,
        until=state.delayed_until,
        remedy=_remedy(facts, index, cause),
        tasks=_launched(spec, state),
        attempt=state.attempt,
        trace=state.trace,
    )


def _launched(spec: StepSpec, state: StepState) -> tuple[str, ...]:
    """Return the names of the tasks that the step has launched. The plan's mirror of a step has no
    tasks, so the step's work names them."""
    asset = spec.work.asset
    if asset is None or spec.work.removes or not state.attempt:
        return ()
    return tuple(task_instance_name(asset.pod, asset.number, task) for task in asset.tasks)


def _remedy(facts: _PhaseFacts, index: int, cause: Cause) -> tuple[str, ...]:
    """Return the command that helps. Errors of a configuration need a new configuration."""
    phase, name = facts.board, facts.name
    state, step = phase.steps[index], phase.spec.steps[index].name
    if cause is Cause.ERROR:
        forced = () if facts.plan.spec.reentrant else ("--force",)
        return () if state.errors else (Verb.RESTART, name, step, *forced)
    if cause is not Cause.CONTINUE:
        return ()
    if state.shown is Status.WAITING and index not in phase.canary:
        return (Verb.CONTINUE, name, step)
    return (Verb.CONTINUE,) if facts.plan.interrupted else (Verb.CONTINUE, name)


def _only_approval(facts: _PhaseFacts) -> tuple[str, ...]:
    """Return the step that waits for approval, if nothing else blocks the phase."""
    approvals = facts.board.approvals()
    if facts.is_interrupted or len(approvals) != 1:
        return ()
    return (facts.board.spec.steps[approvals[0]].name,)


def _pod(spec: StepSpec) -> str:
    asset = spec.work.asset
    return spec.name if asset is None else f"{asset.pod}-{asset.number}"


def _cause(facts: _PhaseFacts, index: int) -> tuple[Cause, str, tuple[str, ...]]:
    plan, phase = facts.plan, facts.board
    state, spec = phase.steps[index], phase.spec.steps[index]
    if state.status is Status.ERROR:
        return Cause.ERROR, f"is in error: {'; '.join(state.all_errors)}", ()
    by_status = _being_removed(state, spec) or _by_status(state)
    if by_status is not None:
        return *by_status, ()
    if plan.halted:
        return Cause.HALTED, f"waits (on-error: stop): {plan.halt_reason}", ()
    if state.shown is Status.WAITING:
        gate = index in phase.canary
        why = "waits for continue (canary gate)" if gate else state.reason or "waits for continue"
        return Cause.CONTINUE, why, ()
    if plan.interrupted:
        return Cause.CONTINUE, "waits: the plan is interrupted or was not started", ()
    if facts.is_interrupted:
        return Cause.CONTINUE, f"waits: {facts.waits}", ()
    if state.cause is Cause.ASSET:
        return Cause.ASSET, state.reason, ()
    before = facts.steps_before(index) or facts.phases_before
    if before:
        return Cause.PREDECESSOR, f"waits for {', '.join(before)}", before
    if facts.at_work >= STEPS_AT_ONCE[plan.spec.steps]:
        room = f"{facts.at_work} steps of its phase are at work, which is the limit"
        return Cause.PREDECESSOR, f"waits for its turn: {room}", ()
    return Cause.RUNNING, f"is about to be worked on ({spec.work.kind}) {state.reason}".strip(), ()


def _is_at_work(step: StepState) -> bool:
    return step.begun and step.status is not Status.ERROR and step.delayed_until is None


def _being_removed(state: StepState, spec: StepSpec) -> tuple[Cause, str] | None:
    """Return the cause for a step that removes something of a service (behaviour 7.2)."""
    if not spec.work.removes or state.shown not in (Status.PREPARED, Status.IN_PROGRESS):
        return None
    if state.cause is Cause.AGENT:
        return Cause.AGENT, f"waits: {state.reason}"
    return Cause.RUNNING, "is being worked on"


def _by_status(state: StepState) -> tuple[Cause, str] | None:
    """Return the cause that the status alone gives; None when it gives none."""
    if state.complete:
        return Cause.COMPLETE, "was forced to complete" if state.forced else "is complete"
    if state.status is Status.PREPARED and not state.reason:
        return Cause.RUNNING, "asks for resources"
    if state.status is Status.PREPARED:
        return Cause.OFFER, f"waits for resources: {state.reason}"
    if state.delayed_until is not None:
        return Cause.BACKOFF, f"failed and is retried later: {state.reason}".rstrip(": ")
    if state.status is Status.STARTED:
        return Cause.READINESS, f"has started and is not ready yet. {state.reason}".strip()
    if state.status is Status.STARTING:
        return Cause.RUNNING, f"is being worked on. {state.reason}".strip()
    return None
