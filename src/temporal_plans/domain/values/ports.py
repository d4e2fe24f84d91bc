"""Ranges of ports."""

from temporal_plans.domain.values.model import Value


class PortRange(Value):
    """Ports that a dynamic port may be taken from; both ends inclusive, a missing end unbounded."""

    begin: int | None = None
    end: int | None = None
