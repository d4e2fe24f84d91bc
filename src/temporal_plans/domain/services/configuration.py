"""A configuration of a service."""

from collections.abc import Mapping

from temporal_plans.domain.owners.configurations import ConfigurationBook, OwnedConfiguration
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.spec import ServiceSpec


class Configuration(OwnedConfiguration):
    """One accepted configuration of a service (behaviour 5.7). ``plans`` replaces the plans
    generated from ``spec``."""

    spec: ServiceSpec
    plans: tuple[PlanSpec, ...] | None = None


def specs_of(book: ConfigurationBook[Configuration]) -> Mapping[str, ServiceSpec]:
    """Return the service's specs by configuration id."""
    return {one.id: one.spec for one in book.all}
