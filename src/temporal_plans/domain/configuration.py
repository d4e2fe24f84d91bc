"""A version of what a service is to be."""

from pydantic import AwareDatetime

from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.service import ServiceSpec


class Configuration(CompactValue):
    """One accepted configuration of a service (reference 5.7). Never changed once accepted.

    ``number`` counts from 1. ``plans`` stands for what would be generated from ``spec``.
    ``source``: the id of the configuration that it repeats, when it was rolled back to.
    """

    id: str
    number: int
    spec: ServiceSpec
    plans: tuple[PlanSpec, ...] | None = None
    at: AwareDatetime | None = None
    by: str = ""
    reason: str = ""
    source: str = ""
