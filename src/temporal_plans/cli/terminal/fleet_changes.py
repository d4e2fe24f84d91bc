"""What changed in a fleet between two looks, a line each."""

from collections.abc import Iterator, Mapping

from temporal_plans.cli.terminal.fleet_status_lines import override_text, suppression_text
from temporal_plans.client.errors import PlansError
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow

Fleet = Mapping[str, EnvironmentStatus | PlansError]
"""The environments by name; the error of one that does not answer."""


def fleet_changes(before: Fleet, after: Fleet) -> Iterator[str]:
    """Yield a line for each entity that stands otherwise than before, then one for every new
    connection, suppression and opening of windows. Problems of environments, which mostly last for
    a moment, are in the table only."""
    told = set(_lines(before))
    yield from (line for line in _lines(after) if line not in told)


def _lines(fleet: Fleet) -> Iterator[str]:
    for status in fleet.values():
        if isinstance(status, EnvironmentStatus):
            yield from (
                f"{row.environment}/{row.entity}: {entity_text(row)}" for row in status.rows
            )
    for name, status in fleet.items():
        if isinstance(status, PlansError):
            yield f"environment {name}: {status}"
        else:
            yield f"{name}: its connection is {status.connection}"
            yield from (suppression_text(name, one) for one in status.suppressions)
            yield from (override_text(name, one) for one in status.overrides)


def entity_text(row: StatusRow) -> str:
    """Return in a few words what an entity has, and what happens or does not."""
    stands = row.standing
    has = stands.installed or "nothing installed"
    why = f"{stands.code} {stands.message}".strip() or "not decided yet"
    if not stands.intent:
        wanted = (
            f"{stands.target} is wanted, " if stands.target not in (None, stands.installed) else ""
        )
        return f"{has}; {wanted}{why}"
    plan = f"plan {stands.number} {stands.intent} to {stands.target or 'nothing'}"
    return f"{has}; {plan} is {row.plan_status}" if row.plan_id else f"{has}; {plan} waits, {why}"
