"""Workflows that stand still because their workflow task fails.

Temporal retries a failed workflow task without limit: the workflow reads as running, takes signals,
and never proceeds until a worker can carry the task out.
"""

from datetime import datetime
from enum import StrEnum

from temporal_plans.domain.plans.hint import Hint, plan_hint, temporal_hint
from temporal_plans.domain.values.model import CompactValue


class Fault(StrEnum):
    """Why a workflow task fails."""

    NONDETERMINISM = "nondeterminism"
    MISSING_CODE = "missing-code"
    TOO_LARGE = "too-large"
    TIMEOUT = "timeout"
    OTHER = "other"


_MEANINGS = {
    Fault.NONDETERMINISM: "the worker's code differs from the code that this workflow ran with: a "
    "strategy, a step kind or a workflow was changed while it ran; a worker with the earlier code "
    "continues it (register changed code under a new name)",
    Fault.MISSING_CODE: "the worker lacks code that this workflow was started with; a worker that "
    "registers it continues the workflow",
    Fault.TOO_LARGE: "the workflow's state exceeds what Temporal takes in one message",
    Fault.TIMEOUT: "the worker does not finish it in time: it was killed, is overloaded, or code "
    "of a strategy or step kind blocks",
    Fault.OTHER: "the worker's log has the traceback; a worker with corrected code continues it",
}

_MISSING_CODE_ERRORS = frozenset({"UnknownStrategy", "UnknownStepKind"})


class StuckWorkflow(CompactValue):
    """An open workflow whose workflow task fails again and again.

    ``parent`` is the workflow that started it as a child; ``attempt`` the current attempt at the
    task; ``error`` the type of the failure, ``failure`` its text in one line.
    """

    workflow_id: str
    type: str = ""
    parent: str = ""
    attempt: int = 1
    since: datetime | None = None
    error: str = ""
    failure: str = ""

    @property
    def fault(self) -> Fault:
        """The class of the failure."""
        if "TMPRL1100" in self.failure or self.error == "NON_DETERMINISTIC_ERROR":
            return Fault.NONDETERMINISM
        if "TMPRL1103" in self.failure or "PAYLOADS_TOO_LARGE" in self.error:
            return Fault.TOO_LARGE
        if self.error == "timeout":
            return Fault.TIMEOUT
        return Fault.MISSING_CODE if self.error in _MISSING_CODE_ERRORS else Fault.OTHER

    @property
    def text(self) -> str:
        """The cause in words."""
        failure = self.failure or self.error or "no reason was given"
        attempt = f"attempt {self.attempt} of its workflow task"
        return f"{attempt} fails: {failure}; {_MEANINGS[self.fault]}"

    @property
    def in_full(self) -> str:
        """The workflow, the cause, and the commands, for an error message of several lines."""
        kind = f"{self.type.lower()} " if self.type else ""
        lines = [f"{kind}{self.workflow_id!r} stands still: {self.text}"]
        return "\n".join([*lines, *(f"  {hint}" for hint in self.hints)])

    @property
    def hints(self) -> tuple[Hint, ...]:
        """The commands that end it and let its plan start over; for a service or a pool, whose
        state would be lost, those that show what its worker did."""
        show = temporal_hint("to see the failure", "workflow", "show", "-w", self.workflow_id)
        restart = self._restart()
        if restart is None:
            return (show,)
        reason = "its workflow task fails"
        end = ("workflow", "terminate", "-w", self.workflow_id, "--reason", reason)
        return (show, temporal_hint("without the earlier code, to end it", *end), restart)

    def _restart(self) -> Hint | None:
        plan, phase, step = self.element
        if not plan:
            return None
        return plan_hint("and then to start over", "restart", plan, phase, step)

    @property
    def element(self) -> tuple[str, str, str]:
        """The plan's id, and the names of the phase and the step; empty for other workflows."""
        if self.type == "Plan":
            return self.workflow_id, "", ""
        own = self.workflow_id.removeprefix(f"{self.parent}/")
        if self.type == "Phase" and self.parent:
            return self.parent, own, ""
        if self.type == "Step" and self.parent:
            # Names of phases have no slash (``values.names``), ids of plans may.
            plan, _, phase = self.parent.rpartition("/")
            return plan, phase, own
        return "", "", ""
