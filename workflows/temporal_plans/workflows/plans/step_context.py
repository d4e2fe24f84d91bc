"""The argument of a developer's step kind."""

from typing import Any, Protocol


class StepContext(Protocol):
    """A running attempt at a step, for step kinds that developers write."""

    @property
    def name(self) -> str:
        """The step's name in its phase."""
        ...

    @property
    def input(self) -> Any:
        """The step's input with ``${NAME}`` replaced by the plan's parameters."""
        ...

    @property
    def arguments(self) -> dict[str, str]:
        """The values of the plan's parameters, by name."""
        ...

    @property
    def attempt(self) -> int:
        """The number of attempts since the step's last restart, this one included."""
        ...

    @property
    def kept(self) -> Any:
        """What an earlier attempt kept since the step's last restart; None without it."""
        ...

    def keep(self, value: Any) -> None:
        """Keep JSON of at most 4,000 bytes for later attempts: a restart of the step forgets it, a
        new attempt after a back-off or a halt of the plan does not."""
        ...

    def say(self, reason: str) -> None:
        """Set the step's reason, which status shows: what it waits for or does now."""
        ...
