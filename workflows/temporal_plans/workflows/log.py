"""The command log: what was said to a workflow, by whom, why, and what came of it."""

from datetime import datetime

from temporal_plans.domain.commands import Command, Outcome
from temporal_plans.messages.plan import CommandLog, LogEntry

KEPT = 1000
"""Entries kept; the number of older ones is."""


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
                parameters=command.parameters,
                by=command.by,
                reason=command.reason,
                via=via,
                outcome=outcome,
            )
        )

    def problem(self, name: str, text: str, *, now: datetime) -> None:
        """A message that was not understood."""
        outcome = Outcome(code=400, message=text[:1000], changed=False)
        self._append(LogEntry(at=now, verb=name, via="signal", outcome=outcome))

    def _append(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        if len(self._entries) > KEPT:
            del self._entries[0]
            self._dropped += 1
