"""The command log: what was said to a workflow, by whom, why, and what came of it."""

from datetime import datetime

from temporal_plans.domain.commands import Command, Outcome
from temporal_plans.domain.transitions import shortened
from temporal_plans.messages.plan import CommandLog, LogEntry

KEPT = 500
"""Entries kept; the number of older ones is."""

_VALUE = 200
"""Characters kept of a parameter's value: the plan has the whole of it."""


class CommandLogger:
    """Appends to a log that is carried from run to run."""

    def __init__(self, log: CommandLog) -> None:
        self._entries = list(log.entries)
        self._dropped = log.dropped

    @property
    def log(self) -> CommandLog:
        return CommandLog(entries=tuple(self._entries), dropped=self._dropped)

    def command(
        self, verb: str, command: Command, outcome: Outcome, *, via: str, now: datetime
    ) -> None:
        self._append(
            LogEntry(
                at=now,
                verb=verb,
                phase=command.phase,
                step=command.step,
                parameters={k: shortened(v, _VALUE) for k, v in command.parameters.items()},
                by=command.by,
                reason=command.reason,
                via=via,
                outcome=_kept(outcome),
            )
        )

    def problem(self, name: str, text: str, *, now: datetime) -> None:
        """A message that was not understood."""
        outcome = _kept(Outcome(code=400, message=text, changed=False))
        self._append(LogEntry(at=now, verb=name, via="signal", outcome=outcome))

    def _append(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        if (excess := len(self._entries) - KEPT) > 0:
            del self._entries[:excess]
            self._dropped += excess


def _kept(outcome: Outcome) -> Outcome:
    """What came of it, without what waited then: that grows with the plan."""
    return outcome.but(message=shortened(outcome.message), waiting=())
