"""The releases of a product, indexed."""

from functools import cached_property

from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.recalls import Recall, covering
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import parse_version


class Catalogue:
    """The releases of one product, by version and by channel."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.releases: dict[str, Release] = {one.version: one for one in product.releases}
        self._channels: dict[str, tuple[Release, ...]] = {}
        self._recalls: dict[str, tuple[Recall, ...]] = {}

    def channel(self, name: str) -> tuple[Release, ...]:
        """Return the releases of a channel, newest first: by version, then by the time of
        publishing, then by text. Versions without an order are last."""
        if name not in self._channels:
            found = [one for one in self.releases.values() if name in one.channels]
            self._channels[name] = tuple(sorted(found, key=_age, reverse=True))
        return self._channels[name]

    def recalls(self, version: str) -> tuple[Recall, ...]:
        """Return the active recalls that cover a version."""
        if version not in self._recalls:
            self._recalls[version] = covering(self.product.recalls, version)
        return self._recalls[version]

    @cached_property
    def related(self) -> frozenset[str]:
        """The products that any release needs, or is incompatible with."""
        releases = self.product.releases
        needed = {one.product for release in releases for one in release.dependencies}
        banned = {one.product for release in releases for one in release.incompatibilities}
        return frozenset(needed | banned)

    def relates_as(self, other: "Catalogue") -> bool:
        """Return whether every release here is in another catalogue with the same relations."""
        return all(
            (found := other.releases.get(version)) is not None
            and found.dependencies == release.dependencies
            and found.incompatibilities == release.incompatibilities
            for version, release in self.releases.items()
        )

    def ramp(self, channel: str, version: str) -> Ramp | None:
        ramps = self.product.ramps
        return next((r for r in ramps if (r.channel, r.version) == (channel, version)), None)


def _age(release: Release) -> tuple[tuple[int, ...], float, str]:
    version = parse_version(release.version)
    published = release.published_at.timestamp() if release.published_at else 0.0
    return (version.key if version and version.key else (), published, release.version)
