"""Why an element is not moving, as a value (DESIGN 9).

The plan's board knows who waits for a continue, a predecessor, a back-off or another plan; why no
agent fits is kept with the step as text, and the pool answers it freshly (``refusals``).
"""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from temporal_plans.domain.board import PhaseBoard, PlanBoard
from temporal_plans.domain.cluster import AgentState, Refusal
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import STEPS_AT_ONCE, PodWork, StepSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import StepState


class Cause(StrEnum):
    """What an element waits for; ``RUNNING`` and ``COMPLETE`` wait for nothing."""

    COMPLETE = "complete"
    RUNNING = "running"
    CONTINUE = "continue"
    OFFER = "offer"
    ASSET = "asset"
    PREDECESSOR = "predecessor"
    BACKOFF = "backoff"
    READINESS = "readiness"
    AGENT = "agent"
    WORKER = "worker"
    ERROR = "error"


class ElementQuery(CompactValue):
    """Argument of the query ``explain``; empty names mean the whole plan or phase."""

    phase: str = ""
    step: str = ""


class PendingWork(CompactValue):
    """An activity or a child workflow that a step waits for; ``workflow_id`` is the latter's.

    It waits for a worker of ``task_queue`` ``since``, or one has started it. ``attempt`` is the one
    under way, or the one that is due at ``next_attempt``; ``last_failure`` is how the one before
    ended. ``last_poll`` is when a worker last asked the queue for such work, None when none has for
    some minutes: then none runs, or all have as much to do as they take. ``agent_state`` is what
    its pool says of an agent that is not alive.
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
    agent_state: AgentState | None = None

    @property
    def agent(self) -> str:
        """Whose task queue it is on, if it is an agent's."""
        head, _, agent = self.task_queue.partition("/")
        return agent if head == "agent" else ""

    def waits_for_a_worker(self, now: datetime) -> bool:
        later = self.next_attempt is not None and self.next_attempt > now
        return not (self.started or self.paused or later)


class Explanation(CompactValue):
    """Why one element is not moving. ``pod`` is set when its requirement waits in a pool (then the
    client adds ``refusals``); ``waits_for`` names predecessors; ``until`` the end of a back-off.
    ``work`` is what it waits for workers to do, which the client adds to what is being worked on.
    ``remedy`` is the command that would move it, where one would: the verb, then the names of the
    phase and the step that it is for."""

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


class Explanations(CompactValue):
    """Answer of the Plan's query ``explain``. ``cut_short`` says how the plan's workflow ended, if
    it did before the plan was COMPLETE: "terminated" and the like."""

    status: Status
    explanations: tuple[Explanation, ...] = ()
    cut_short: str = ""


ASSET_REASON = "waits for its pod"
"""How the reason of a step begins that waits for an asset."""


def explain(board: PlanBoard, phase: int | None, step: int | None) -> Explanations:
    """One explanation for a step; for a phase or plan, one for each element that holds it up."""
    if phase is None:
        return Explanations(status=board.status, explanations=tuple(_plan(board)))
    if step is None:
        found = tuple(_phase(board, phase))
        return Explanations(status=board.phases[phase].status, explanations=found)
    answer = _step(board, phase, step)
    return Explanations(status=answer.status, explanations=(answer,))


def _plan(board: PlanBoard) -> Iterator[Explanation]:
    if board.complete:
        text = "the plan is complete"
        if board.standing:
            text = f"{text}, and stays for what comes"
            if board.interrupted:
                text = f"{text}; it is interrupted, so that will wait for continue"
        yield Explanation(status=Status.COMPLETE, cause=Cause.COMPLETE, text=text)
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
    for index, phase in enumerate(board.phases):
        if not phase.complete:
            yield from _phase(board, index)


def _phase(board: PlanBoard, index: int) -> Iterator[Explanation]:
    phase = board.phases[index]
    name = phase.spec.name
    if phase.complete:
        yield Explanation(
            phase=name, status=phase.status, cause=Cause.COMPLETE, text=f"phase {name} is complete"
        )
        return
    if waits := phase.waits():
        yield Explanation(
            phase=name,
            status=phase.status,
            cause=Cause.CONTINUE,
            text=waits,
            remedy=(Verb.CONTINUE, name, *_alone(phase)),
        )
    if predecessors := _phases_before(board, index):
        yield Explanation(
            phase=name,
            status=phase.status,
            cause=Cause.PREDECESSOR,
            text=f"phase {name} waits for phase {', '.join(predecessors)}",
            waits_for=predecessors,
        )
        return
    begun = (i for i, s in enumerate(phase.steps) if s.begun or s.status is Status.ERROR)
    for step in sorted({*phase.shown_candidates(), *begun}):
        if not phase.steps[step].complete:
            yield _step(board, index, step)


def _phases_before(board: PlanBoard, index: int) -> tuple[str, ...]:
    """The phases that must be complete before this one may begin."""
    if board.interrupted or index in board.candidates() or board.phases[index].is_interrupted:
        return ()
    wanted = board.phases[index].spec.depends_on
    return tuple(
        phase.spec.name
        for i, phase in enumerate(board.phases)
        if not phase.complete and (phase.spec.name in wanted if wanted else i < index)
    )


def _step(board: PlanBoard, phase_index: int, index: int) -> Explanation:
    phase = board.phases[phase_index]
    spec, state = phase.spec.steps[index], phase.steps[index]
    cause, text, waits_for = _cause(board, phase, phase_index, index)
    return Explanation(
        phase=phase.spec.name,
        step=spec.name,
        status=state.shown,
        cause=cause,
        text=f"step {spec.name} {text}",
        pod=_pod(spec) if cause is Cause.OFFER else "",
        waits_for=waits_for,
        until=state.delayed_until,
        remedy=_remedy(board, phase, index, cause),
    )


def _remedy(board: PlanBoard, phase: PhaseBoard, index: int, cause: Cause) -> tuple[str, ...]:
    """Errors of a configuration are mended by another one, and by no command."""
    state, name, step = phase.steps[index], phase.spec.name, phase.spec.steps[index].name
    if cause is Cause.ERROR:
        return () if state.errors else (Verb.RESTART, name, step)
    if cause is not Cause.CONTINUE:
        return ()
    if state.shown is Status.WAITING and index not in phase.canary:
        return (Verb.CONTINUE, name, step)
    return (Verb.CONTINUE,) if board.interrupted else (Verb.CONTINUE, name)


def _alone(phase: PhaseBoard) -> tuple[str, ...]:
    """The step that waits for approval, if it is the only thing that holds up the phase."""
    approvals = phase.approvals()
    if phase.is_interrupted or len(approvals) != 1:
        return ()
    return (phase.spec.steps[approvals[0]].name,)


def _pod(spec: StepSpec) -> str:
    return f"{spec.work.pod}-{spec.work.index}" if isinstance(spec.work, PodWork) else spec.name


def _cause(
    board: PlanBoard, phase: PhaseBoard, phase_index: int, index: int
) -> tuple[Cause, str, tuple[str, ...]]:
    state, spec = phase.steps[index], phase.spec.steps[index]
    if state.status is Status.ERROR:
        return Cause.ERROR, f"is in error: {'; '.join(state.all_errors)}", ()
    by_status = _being_removed(state, spec) or _by_status(state)
    if by_status is not None:
        return *by_status, ()
    if state.shown is Status.WAITING:
        gate = index in phase.canary
        why = "waits for continue (canary gate)" if gate else state.reason or "waits for continue"
        return Cause.CONTINUE, why, ()
    if board.interrupted:
        return Cause.CONTINUE, "waits: the plan is interrupted or was not started", ()
    if phase.is_interrupted:
        return Cause.CONTINUE, f"waits: {phase.waits()}", ()
    if state.reason.startswith(ASSET_REASON):
        return Cause.ASSET, state.reason, ()
    before = _steps_before(phase, index) or _phases_before(board, phase_index)
    if before:
        return Cause.PREDECESSOR, f"waits for {', '.join(before)}", before
    at_work = sum(map(_is_at_work, phase.steps))
    if at_work >= STEPS_AT_ONCE[board.spec.steps]:
        text = f"waits for its turn: {at_work} steps of its phase are at work, and no more may be"
        return Cause.PREDECESSOR, text, ()
    return Cause.RUNNING, f"is about to be worked on ({spec.work.kind}) {state.reason}".strip(), ()


def _is_at_work(step: StepState) -> bool:
    return step.begun and step.status is not Status.ERROR and step.delayed_until is None


_REMOVALS = ("kill", "unreserve", "erase", "deregister")


def _being_removed(state: StepState, spec: StepSpec) -> tuple[Cause, str] | None:
    """What the statuses of the steps that take a service away say (reference 7.2)."""
    if spec.work.kind not in _REMOVALS or state.shown not in (Status.PREPARED, Status.IN_PROGRESS):
        return None
    if state.reason:
        return Cause.AGENT, f"waits: {state.reason}"
    return Cause.RUNNING, "is being worked on"


def _by_status(state: StepState) -> tuple[Cause, str] | None:
    """What a status alone says."""
    if state.complete:
        return Cause.COMPLETE, "was forced to complete" if state.forced else "is complete"
    if state.status is Status.PREPARED:
        return Cause.OFFER, f"waits for resources: {state.reason}"
    if state.delayed_until is not None:
        return Cause.BACKOFF, f"failed and is tried again later: {state.reason}".rstrip(": ")
    if state.status is Status.STARTED:
        return Cause.READINESS, f"has started and is not ready yet. {state.reason}".strip()
    if state.status is Status.STARTING:
        return Cause.RUNNING, f"is being worked on. {state.reason}".strip()
    return None


def _steps_before(phase: PhaseBoard, index: int) -> tuple[str, ...]:
    """The steps that its strategy puts before this one and that are not complete."""
    if index in phase.shown_candidates():
        return ()
    wanted = phase.spec.steps[index].depends_on
    return tuple(
        spec.name
        for i, spec in enumerate(phase.spec.steps)
        if not phase.steps[i].complete and (spec.name in wanted if wanted else i < index)
    )[:10]
