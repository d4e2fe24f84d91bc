"""Decisions about fleets: from nothing, after one event, and at a clock edge without a change."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from temporal_plans.domain.fleets.answers import Answers
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.progress import carried_out
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.windows import Window

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
PER_PRODUCT = 20
"""Entities of one product."""
CHAIN = 20
"""Products of which each needs the one before."""
VERSIONS = tuple(f"1.{minor}.0" for minor in range(10))
OUTDATED = 10
"""One of so many entities has an old version."""
PROMOTED_RELEASES, CANARIES = 1_000, 200


@dataclass(frozen=True)
class Measurement:
    """Seconds of CPU time of each round, as other load on the machine is no part of the answer;
    ``count``: how many decisions one round makes."""

    name: str
    entities: int
    count: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)


def fleet(size: int) -> Snapshot:
    """An environment of some entities. A tenth could be upgraded, and waits for the window."""
    count = max(size // PER_PRODUCT, 1)
    products = [_product(number) for number in range(count)]
    entities = [_entity(number, count) for number in range(size)]
    closed = Window.of([(NOW + timedelta(hours=9), NOW + timedelta(hours=17))], None)
    settings = {
        "windows": {"night": closed},
        "downtime_window": "night",
        "no_downtime_window": "night",
    }
    environment = {"name": "bench", "settings": settings, "entities": entities}
    return Snapshot.model_validate({"environment": environment, "products": products})


def _product(number: int) -> dict[str, Any]:
    needs = [{"product": f"g:p{number - 1}", "minimum_version": "1.0.0"}] if number % CHAIN else []
    releases = [{"version": one, "channels": ["stable"], "dependencies": needs} for one in VERSIONS]
    return {"id": f"g:p{number}", "releases": releases}


def _entity(number: int, products: int) -> dict[str, Any]:
    version = VERSIONS[5] if number % OUTDATED == 0 else VERSIONS[-1]
    return {
        "name": f"e{number}",
        "settings": {
            "product": f"g:p{number % products}",
            "config": {"1.0.0": {"revision": "r"}},
            "dependency_groups": [f"group{number // products}"],
        },
        "state": {"version": version, "config": {"key": "1.0.0", "revision": "r"}},
    }


def measure_fleets(
    sizes: Sequence[int], rounds: int, report: Callable[[str], None]
) -> list[Measurement]:
    """Measure fleets of some sizes, and the promotion of one product."""
    found: list[Measurement] = []
    for size in sizes:
        report(f"{size} entities")
        found += _measured(size, rounds)
    report("promotions")
    return [*found, _promotions(rounds)]


def _measured(size: int, rounds: int) -> list[Measurement]:
    snapshot = fleet(size)
    answers = Answers(snapshot)
    snapshot = carried_out(snapshot, answers.decide(NOW))
    answers.change_to(snapshot)
    answers.decide(NOW)
    one = snapshot.environment.entities[size // 2]
    entities = [_moved(one, VERSIONS[1 + n % 8]) for n in range(rounds + 1)]
    concerned = frozenset({one.name, *answers.world.neighbours_of(one)})

    def by_an_index_of_its_own(_round: int) -> int:
        return len(decide(snapshot, NOW, only=concerned).decisions)

    def by_the_kept_index(round_: int) -> int:
        answers.change_entity(entities[round_])
        return len(answers.decide(NOW).decisions)

    def published(round_: int) -> int:
        product = snapshot.products[0]
        release = Release(version=f"1.10.{round_}", channels=("stable",))
        answers.change_product(product.but(releases=(*product.releases, release)))
        return len(answers.decide(NOW).decisions)

    def nothing(_round: int) -> int:
        return len(answers.decide(NOW).decisions)

    def everything(_round: int) -> int:
        return len(decide(snapshot, NOW).decisions)

    return [
        _timed("all, from nothing", size, rounds, everything),
        _timed("one event, indexed for it", size, rounds, by_an_index_of_its_own),
        _timed("one event, kept index", size, rounds, by_the_kept_index),
        _timed("one release published", size, rounds, published),
        _timed("a clock edge, nothing due", size, rounds, nothing),
    ]


def _moved(entity: Entity, version: str) -> Entity:
    return entity.but(state=entity.state.but(version=version))


def _promotions(rounds: int) -> Measurement:
    releases = tuple(
        Release(version=f"1.{n}.0", channels=("DEV",), published_at=NOW - timedelta(hours=n % 20))
        for n in range(PROMOTED_RELEASES)
    )
    stages = [
        {
            "source": "DEV",
            "target": "stable",
            "canary": {"promote": {"percent": 50, "soak": "1h"}},
        }
    ]
    reports = [
        {
            "environment": f"env{n}",
            "entity": "e",
            "channel": "DEV",
            "version": f"1.{PROMOTED_RELEASES - 1 - n % 5}.0",
            "soak": {"since": NOW - timedelta(minutes=n % 50)},
        }
        for n in range(CANARIES)
    ]
    state = ProductState.model_validate(
        {
            "product": Product(id="g:p", releases=releases),
            "pipeline": {"product": "g:p", "stages": stages},
            "reports": reports,
        }
    )

    def decided(_round: int) -> int:
        return len(decide_promotions(state, NOW).promotions)

    return _timed(f"{PROMOTED_RELEASES} releases in a stage", CANARIES, rounds, decided)


def _timed(name: str, entities: int, rounds: int, run: Callable[[int], int]) -> Measurement:
    """Run once to warm up, then ``rounds`` times."""
    count = run(0)
    seconds: list[float] = []
    for round_ in range(1, rounds + 1):
        start = time.process_time()
        count = run(round_)
        seconds.append(time.process_time() - start)
    return Measurement(name, entities, count, tuple(seconds))


def fleets_as_json(results: Sequence[Measurement], environment: dict[str, Any]) -> dict[str, Any]:
    cases = [
        {
            "name": one.name,
            "entities": one.entities,
            "decisions": one.count,
            "seconds": {"median": one.median, "rounds": list(one.seconds)},
        }
        for one in results
    ]
    return {**environment, "cases": cases}


def print_fleets(results: Sequence[Measurement], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("case", no_wrap=True)
    for heading in ("entities", "decisions", "ms", "from - to", "decisions/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        table.add_row(
            one.name,
            str(one.entities),
            str(one.count),
            f"{1000 * one.median:.2f}",
            f"{1000 * min(one.seconds):.2f} - {1000 * max(one.seconds):.2f}",
            f"{one.count / one.median:.0f}" if one.count else "",
        )
    console.print(table)
    rounds = len(results[0].seconds) if results else 0
    console.print(f"Medians of {rounds} rounds, in one process without a server; ms are CPU time.")
