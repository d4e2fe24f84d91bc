"""What a process of a spoke is."""

from dataclasses import dataclass

from temporal_plans.domain.fleets.spokes import SpokeInfo


@dataclass(frozen=True, slots=True)
class Spoke:
    """The spoke of an environment, as this process registers it."""

    environment: str
    info: SpokeInfo
