"""The construction of a service's configurations."""

from temporalio import workflow

from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.messages.services import ServiceInput


def new_configuration(
    book: ConfigurationBook[Configuration], input: ServiceInput, source: str = ""
) -> Configuration:
    """Return the next configuration, not yet accepted; ``source`` is the id that it repeats."""
    return Configuration(
        id=str(workflow.uuid4()),
        number=book.next_number,
        spec=input.spec,
        plans=input.plans,
        at=workflow.now(),
        by=input.by,
        reason=input.reason,
        source=source,
    )
