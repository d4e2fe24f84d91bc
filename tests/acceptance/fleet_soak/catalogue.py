"""The products of a fleet under test: what was published and recalled, as the test knows it."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.messages.fleets.payloads import ReleasePayload

FILES = ("install", "upgrade", "configure", "uninstall", "rollback")

FILE = """
name: {file}
phases:
  change:
    steps:
      work: {{activity: {{type: note, timeout: 8s, input: {input}}}}}
"""
"""The timeout is for steps whose worker is killed: nothing is known of them until it is over."""

NEEDS = {
    "shop:a": (),
    "shop:b": ("shop:a",),
    "shop:c": ("shop:b",),
    "shop:d": ("shop:a", "shop:c"),
    "shop:e": (),
}
"""The products, each with those that its releases depend on."""

Key = tuple[int, int, int]


def key(version: str) -> Key:
    """The place of a version in their order; all here are ``1.2.3``."""
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch


def payload(version: str, *, seconds: float = 0.0, failing: frozenset[str] = frozenset()) -> Any:
    """Plan files that write down what they do. ``failing`` are the files whose step fails."""

    def text(file: str) -> str:
        fails = str(file in failing).lower()
        said = f'{{file: {file}, version: "{version}", seconds: {seconds:.2f}, fails: {fails}}}'
        return FILE.format(file=file, input=said)

    return ReleasePayload(files={f"{file}.yml": text(file) for file in FILES})


@dataclass(frozen=True)
class Published:
    """A release. ``sure``: the product is known to have it."""

    release: Release
    payload: ReleasePayload
    sure: bool = False

    @property
    def version(self) -> str:
        return self.release.version


@dataclass
class Catalogue:
    """A product. ``recalls`` by id: they may have been taken or not until they are looked up."""

    name: str
    releases: dict[str, Published] = field(default_factory=dict[str, Published])
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])

    @property
    def newest(self) -> Key:
        return max(map(key, self.releases), default=(1, 0, 0))

    def next_version(self, chance: Random) -> str:
        major, minor, patch = self.newest
        if not self.releases:
            return "1.0.0"
        return f"{major}.{minor + 1}.0" if chance.random() < 0.7 else f"{major}.{minor}.{patch + 1}"

    def add(self, published: Published) -> Published:
        self.releases[published.version] = published
        return published

    def taken(self, version: str) -> None:
        self.releases[version] = replace(self.releases[version], sure=True)


class Catalogues:
    """All products."""

    def __init__(self) -> None:
        self.products = {name: Catalogue(name) for name in NEEDS}

    def first(self, product: str) -> Published:
        """1.0.0, which needs what the product always needs."""
        needs = tuple(
            Dependency(product=name, minimum_version="1.0.0", maximum_version="1.x.x")
            for name in NEEDS[product]
        )
        release = Release(version="1.0.0", channels=("stable",), dependencies=needs)
        return self.products[product].add(Published(release, payload("1.0.0")))

    def next(self, product: str, chance: Random) -> Published:
        """A newer release: most work at once; some take seconds, some fail, some fail twice."""
        catalogue = self.products[product]
        version = catalogue.next_version(chance)
        mood = chance.random()
        failing = frozenset({"upgrade"} if mood < 0.12 else ())
        if mood < 0.04:
            failing = frozenset({"upgrade", "rollback"})
        seconds = chance.uniform(0.3, 2.5) if chance.random() < 0.35 else 0.0
        release = Release(
            version=version,
            channels=("stable",),
            dependencies=tuple(self._dependency(name, chance) for name in NEEDS[product]),
            incompatibilities=self._incompatibilities(product, chance),
        )
        files = payload(version, seconds=seconds, failing=failing)
        return catalogue.add(Published(release, files))

    def _dependency(self, product: str, chance: Random) -> Dependency:
        """A range that has some of its releases, mostly the newest; now and then one that is not
        published yet."""
        known = sorted(self.products[product].releases, key=key)
        at = chance.randrange(max(len(known) - 3, 0), len(known)) if known else 0
        minimum = known[at] if known else "1.0.0"
        major, minor, _ = self.products[product].newest
        maximum = "1.x.x" if chance.random() < 0.6 else f"{major}.{minor}.x"
        if chance.random() < 0.05:
            minimum, maximum = f"{major}.{minor + 1}.0", "1.x.x"
        return Dependency(product=product, minimum_version=minimum, maximum_version=maximum)

    def _incompatibilities(self, product: str, chance: Random) -> tuple[Incompatibility, ...]:
        if product != "shop:e" or chance.random() < 0.7:
            return ()
        versions = sorted(self.products["shop:a"].releases, key=key)
        worst = chance.choice(versions) if versions else "1.0.0"
        return (Incompatibility(product="shop:a", minimum_version=worst, maximum_version=worst),)

    def recall(self, product: str, id: str, chance: Random) -> Recall:
        """Of one release or of some, with or without a way back."""
        catalogue = self.products[product]
        versions = sorted(catalogue.releases, key=key)[-5:]
        start = chance.choice(versions)
        single = chance.random() < 0.7
        back = chance.random() < 0.6
        minimum = chance.choice([None, "1.0.0"]) if back else None
        end = None if single else ".".join(map(str, (key(start)[0], key(start)[1] + 2, 0)))
        recall = Recall(
            id=id,
            start=start,
            end=end,
            single=single,
            roll_off=RollOff(allow_downgrade=back, minimum_release=minimum),
        )
        catalogue.recalls[id] = recall
        return recall
