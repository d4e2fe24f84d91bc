"""A service's configurations: those that it keeps, and which is in force."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.commands import suggest
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.messages.service import ServiceInput

KEPT = 20
"""Configurations kept, beside those that tasks still run with."""

KEPT_CHARACTERS = 500_000
"""Fewer are kept of large ones: all that a service remembers has to fit into one payload."""


class ServiceConfigs:
    """Oldest first; the newest accepted one is the target (reference 5.7)."""

    def __init__(self, configurations: Iterable[Configuration], target: str) -> None:
        self._by_id = {one.id: one for one in configurations}
        self._target = target

    @property
    def all(self) -> tuple[Configuration, ...]:
        return tuple(self._by_id.values())

    @property
    def target(self) -> Configuration:
        return self._by_id[self._target]

    @property
    def has_target(self) -> bool:
        """False before the first configuration is accepted."""
        return self._target in self._by_id

    @property
    def specs(self) -> Mapping[str, ServiceSpec]:
        return {one.id: one.spec for one in self._by_id.values()}

    def make(self, input: ServiceInput, source: str = "") -> Configuration:
        """The next one, which is yet to be accepted; ``source`` is the id of one it repeats."""
        return Configuration(
            id=str(workflow.uuid4()),
            number=max((one.number for one in self._by_id.values()), default=0) + 1,
            spec=input.spec,
            plans=input.plans,
            at=workflow.now(),
            by=input.by,
            reason=input.reason,
            source=source,
        )

    def accept(self, configuration: Configuration) -> None:
        self._by_id[configuration.id] = configuration
        self._target = configuration.id

    def prune(self, used: Collection[str]) -> None:
        """Forget old ones that nothing runs with any more."""
        kept = {self._target, *used, *self._recent()}
        self._by_id = {key: one for key, one in self._by_id.items() if key in kept}

    def _recent(self) -> Iterator[str]:
        size = 0
        for one in list(self._by_id.values())[: -KEPT - 1 : -1]:
            size += len(one.model_dump_json())
            if size > KEPT_CHARACTERS:
                return
            yield one.id

    def get(self, config_id: str) -> Configuration:
        """The configuration of an id, the target for none. Raises ApplicationError."""
        return self.find(config_id) if config_id else self.target

    def find(self, config: str) -> Configuration:
        """By id or by number. Raises ApplicationError, naming those that there are."""
        for one in self._by_id.values():
            if config in (one.id, str(one.number)):
                return one
        numbers = [str(one.number) for one in self._by_id.values()]
        raise ApplicationError(
            f"no configuration {config}{suggest(config, numbers)}",
            type="ConfigurationNotFound",
            non_retryable=True,
        )

    def before(self) -> Configuration | None:
        """The one that was in force before the target, if it is kept."""
        numbers = [one for one in self._by_id.values() if one.number < self.target.number]
        return max(numbers, key=lambda one: one.number, default=None)
