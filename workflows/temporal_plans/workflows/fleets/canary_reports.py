"""What an environment tells products of the entities that their promotions look at, and hears."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from temporalio import workflow

from temporal_plans.domain.fleets.entities import Entity, EntityState
from temporal_plans.domain.fleets.environment import Connection, Environment
from temporal_plans.domain.fleets.promotion.progress import with_tests
from temporal_plans.domain.fleets.promotion.reports import condition_of
from temporal_plans.messages.fleets.catalogues import KnownProduct
from temporal_plans.messages.fleets.environments import EnvironmentState
from temporal_plans.messages.promotions import (
    CanaryAnswer,
    CanaryReports,
    CanaryState,
    ReportCanaries,
)
from temporal_plans.workflows.fleets.audited import ask, start

FAILED_REPORT_INTERVAL = timedelta(minutes=1)
"""The pause after a report that a product has refused, or that failed in an unexpected way."""


class HasState(Protocol):
    """The workflow: its state, which changes while activities run."""

    state: EnvironmentState

    def changed(self) -> None: ...

    def record_problem(self, name: str, text: str) -> None: ...


@dataclass(slots=True)
class _Told:
    """The last report to a product: its channels, labels and connection, and each entity (``seen``)
    with what the report has of it (``said``)."""

    channels: tuple[str, ...]
    labels: dict[str, str]
    connection: Connection
    entities: tuple[Entity, ...] = ()
    seen: dict[str, Entity] = field(default_factory=dict[str, Entity])
    said: dict[str, CanaryState] = field(default_factory=dict[str, CanaryState])


class CanaryReporting:
    """Reports to products. One report to a product is under way at a time; what changes meanwhile
    is in the next one. Each run of the workflow begins with all entities, so that nothing has to be
    carried from run to run."""

    def __init__(self, owner: HasState) -> None:
        self._owner = owner
        self._told: dict[str, _Told] = {}
        self._numbers: dict[str, int] = {}
        self._busy: set[str] = set()

    def advance(self, now: datetime) -> None:
        """Begin the reports that are due."""
        state = self._owner.state
        for name in self._told.keys() - state.products.keys():
            del self._told[name]
        for name, known in state.products.items():
            if not known.canary_channels and name not in self._told:
                continue
            if name in self._busy:
                continue
            report = self._report(name, known, state.environment, now)
            if report is not None:
                self._busy.add(name)
                start(self._send(name, report))

    def _report(
        self, name: str, known: KnownProduct, environment: Environment, now: datetime
    ) -> CanaryReports | None:
        """Return what is new for a product, and take it for told; None when nothing is."""
        labels, connection = environment.settings.labels, environment.facts.connection
        told = self._told.get(name)
        around = (known.canary_channels, labels, connection)
        complete = told is None or (told.channels, told.labels, told.connection) != around
        if not complete and told is not None and told.entities is environment.entities:
            return None
        if told is None or complete:
            told = self._told[name] = _Told(*around)
        told.entities = environment.entities
        if not known.canary_channels:
            del self._told[name]  # the product has forgotten the reports by itself
            return None
        mine = [one for one in environment.entities if _is_wanted(one, name, known, environment)]
        new = tuple(_news(told, mine, environment, now))
        there = {one.name for one in mine}
        gone = tuple(sorted(told.said.keys() - there))
        for one in gone:
            del told.said[one], told.seen[one]
        if not (new or gone or complete):
            return None
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        return CanaryReports(
            environment=environment.name,
            labels=labels,
            connection=connection,
            epoch=workflow.info().start_time,
            number=number,
            complete=complete,
            entities=new,
            gone=gone,
        )

    async def _send(self, name: str, report: CanaryReports) -> None:
        try:
            request = ReportCanaries(product=name, reports=report)
            summary = f"{len(report.entities)} entities to {name}"
            answer = await ask("report_canaries", request, CanaryAnswer, summary=summary)
            if answer.send_all:
                self._told.pop(name, None)
        except Exception as error:  # it would be sent again at once, without end
            self._owner.record_problem("report_canaries", f"{type(error).__name__}: {error}")
            self._told.pop(name, None)
            await workflow.sleep(FAILED_REPORT_INTERVAL)
        finally:
            self._busy.discard(name)
            self._owner.changed()


def _is_wanted(entity: Entity, product: str, known: KnownProduct, environment: Environment) -> bool:
    if entity.settings is None or entity.settings.product != product:
        return False
    return _channel(entity, environment) in known.canary_channels


def _channel(entity: Entity, environment: Environment) -> str:
    own = entity.settings.release_channel if entity.settings else None
    return own or environment.settings.release_channel


def _news(
    told: _Told, entities: Iterable[Entity], environment: Environment, now: datetime
) -> Iterator[CanaryState]:
    """Yield the entities that are others than in the reports before."""
    for entity in entities:
        channel = _channel(entity, environment)
        former = told.said.get(entity.name)
        same = told.seen.get(entity.name) is entity
        if same and former is not None and former.channel == channel:
            continue
        told.seen[entity.name] = entity
        one = CanaryState(
            entity=entity.name,
            channel=channel,
            version=entity.state.version,
            condition=condition_of(entity.state),
            known_at=_known_at(entity.state, now),
        )
        if former is None or former.but(known_at=one.known_at) != one:
            told.said[entity.name] = one
            yield one


def _known_at(state: EntityState, now: datetime) -> datetime:
    """Return since when an entity is as it is, as far as is known."""
    ended = state.last_plan.ended_at if state.last_plan else None
    times = [one for one in (state.reported_at, ended) if one is not None]
    return max(times, default=now)


def with_tested(
    state: EnvironmentState, product: str, known: KnownProduct | None, now: datetime
) -> EnvironmentState:
    """Return the state with suppressions of the entities that promotions of a product test, and no
    others of it; None: it has no entities of the product any more."""
    tests = known.tests if known is not None else ()
    environment = with_tests(state.environment, product, tests, now)
    return state if environment is state.environment else state.but(environment=environment)
