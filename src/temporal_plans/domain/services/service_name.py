"""The rules of a service's name."""

from collections.abc import Iterator

from temporal_plans.domain.values.names import DNS_LABEL_LIMIT
from temporal_plans.domain.values.refusal import Reason


def separator_problem(name: str) -> Iterator[Reason]:
    """Yield why task ids can't have the name (ServiceNameCannotContainDoubleUnderscores)."""
    if "__" in name:
        yield Reason(
            field="name",
            problem="must not contain __, which separates the parts of task ids",
            value=name,
            fix="choose another name",
        )


def length_problem(name: str) -> Iterator[Reason]:
    """Yield why DNS names can't have the name (ServiceNameCannotBreakDNS)."""
    if len(name.replace("/", "")) > DNS_LABEL_LIMIT:
        yield Reason(
            field="name",
            problem=f"must have at most {DNS_LABEL_LIMIT} characters without slashes, because it is"
            " part of DNS names",
            value=name,
            fix="choose a shorter name",
        )
