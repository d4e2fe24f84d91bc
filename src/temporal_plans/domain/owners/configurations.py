"""The configurations of an owner: those that are kept, and the one in force.

A wing defines their content: a service's configuration has a ``svc.yml``.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Generic, TypeVar

from pydantic import AwareDatetime

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError

COUNT_LIMIT = 20
"""Configurations that are kept, beside those still in use."""

CHARACTERS_LIMIT = 500_000
"""The total size of the kept ones: an owner's whole state has to fit into one payload."""


class OwnedConfiguration(CompactValue):
    """One accepted configuration. Never changed once accepted.

    ``number`` counts from 1. ``source``: for a rollback, the id of the configuration that it
    repeats.
    """

    id: str
    number: int
    at: AwareDatetime | None = None
    by: str = ""
    reason: str = ""
    source: str = ""


class ConfigurationNotFound(RefusedError):
    """No configuration of that id or number is kept; the reason lists the kept ones."""


C = TypeVar("C", bound=OwnedConfiguration)


class ConfigurationBook(Generic[C]):
    """The kept configurations, oldest first; the newest accepted one is the target (behaviour
    5.7)."""

    def __init__(self, configurations: Iterable[C], target: str) -> None:
        self._by_id = {one.id: one for one in configurations}
        self._target = target

    @property
    def all(self) -> tuple[C, ...]:
        return tuple(self._by_id.values())

    @property
    def target(self) -> C:
        return self._by_id[self._target]

    @property
    def has_target(self) -> bool:
        """False before the first configuration is accepted."""
        return self._target in self._by_id

    @property
    def next_number(self) -> int:
        """The number of the next configuration."""
        return max((one.number for one in self._by_id.values()), default=0) + 1

    def accept(self, configuration: C) -> None:
        """Store a configuration and make it the target."""
        self._by_id[configuration.id] = configuration
        self._target = configuration.id

    def prune(self, used: Collection[str]) -> None:
        """Drop old configurations that are not in ``used`` (ids)."""
        kept = {self._target, *used, *self._recent()}
        self._by_id = {key: one for key, one in self._by_id.items() if key in kept}

    def _recent(self) -> Iterator[str]:
        size = 0
        for one in list(self._by_id.values())[: -COUNT_LIMIT - 1 : -1]:
            size += len(one.model_dump_json())
            if size > CHARACTERS_LIMIT:
                return
            yield one.id

    def get(self, config_id: str) -> C:
        """Return the configuration of an id, the target for an empty one. Raises
        ConfigurationNotFound."""
        return self.find(config_id) if config_id else self.target

    def find(self, config: str) -> C:
        """Return a configuration by id or number. Raises ConfigurationNotFound, which lists the
        kept numbers."""
        for one in self._by_id.values():
            if config in (one.id, str(one.number)):
                return one
        numbers = [str(one.number) for one in self._by_id.values()]
        known = suggestion(config, numbers)
        refusal = Refusal.of(Code.NOT_FOUND, f"there is no configuration {config!r}", fix=known)
        raise ConfigurationNotFound(refusal)

    def before(self) -> C:
        """Return the configuration that was in force before the target. Raises
        ConfigurationNotFound."""
        number = self.target.number
        earlier = [one for one in self._by_id.values() if one.number < number]
        if not earlier:
            problem = f"there is no configuration before {number}, which is in force"
            raise ConfigurationNotFound(
                Refusal.of(Code.NOT_FOUND, problem, fix="see `temporal plan configs`")
            )
        return max(earlier, key=lambda one: one.number)
