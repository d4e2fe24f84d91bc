"""The command log: the commands to a workflow, their senders, reasons and outcomes."""

from collections import deque
from datetime import datetime

from temporal_plans.domain.plans.commands import Command, Outcome
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import ending_of
from temporal_plans.messages.plans import CommandLog, LogEntry

ENTRIES_LIMIT = 500
"""The number of entries kept; of older entries only the number is kept."""

SIZE_LIMIT = 150_000
"""Bytes of the entries kept, as JSON: a plan carries its log beside its state."""

_VALUE_SIZE_LIMIT = 200
"""Characters kept of a parameter's value; the plan has the whole value."""


class CommandLogger:
    """Appends to a log that each run of a workflow passes to the next."""

    def __init__(self, log: CommandLog) -> None:
        self._entries = deque(log.entries)
        self._sizes = deque(map(_size, log.entries))
        self._size = sum(self._sizes)
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
                parameters={
                    k: shortened(v, _VALUE_SIZE_LIMIT) for k, v in command.parameters.items()
                },
                force=command.force,
                by=command.by,
                reason=command.reason,
                mark=command.mark,
                via=via,
                outcome=_shortened_outcome(outcome),
            )
        )

    def problem(self, name: str, text: str, *, now: datetime, trace: str = "") -> None:
        """Append a message that could not be handled, or a failure of developers' code with its
        ``trace``."""
        outcome = _shortened_outcome(Outcome.refusing(Refusal.of(Code.MALFORMED, text)))
        entry = LogEntry(at=now, verb=name, via="signal", outcome=outcome, trace=ending_of(trace))
        self._append(entry)

    def _append(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        self._sizes.append(_size(entry))
        self._size += self._sizes[-1]
        while len(self._entries) > ENTRIES_LIMIT or self._size > SIZE_LIMIT:
            self._entries.popleft()
            self._size -= self._sizes.popleft()
            self._dropped += 1


def _size(entry: LogEntry) -> int:
    return len(entry.model_dump_json())


def _shortened_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome without its waiting elements, which grow with the plan, and without a
    refusal's reasons, which are in its message."""
    refusal = outcome.refusal and outcome.refusal.but(reasons=())
    return outcome.but(message=shortened(outcome.message), waiting=(), refusal=refusal)
