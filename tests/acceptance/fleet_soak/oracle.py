"""What the rules say of a fleet that has come to rest, worked out without the product's own code.

It knows releases, recalls and dependencies only; what a suppression holds back it leaves alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from acceptance.fleet_soak.catalogue import Catalogues, key
from acceptance.fleet_soak.environments import product_of
from temporal_plans.domain.fleets.recalls import Recall, RecallStatus
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus

Range = Dependency | Incompatibility


@dataclass(frozen=True)
class Oracle:
    """``recalls`` are those that each product says that it has."""

    catalogues: Catalogues
    recalls: Mapping[str, tuple[Recall, ...]]

    def faults(self, status: EnvironmentStatus, now: datetime) -> Iterator[str]:
        installed = {row.entity: row.standing.installed for row in status.rows}
        for entity, version in installed.items():
            where = f"{status.name}/{entity} at {version}"
            for text in self._broken(installed, entity, version):
                yield f"{where}: {text}"
            if not _is_stopped(status, entity, now):
                better = self._could_go(installed, entity, version)
                if better is not None:
                    yield f"{where}: stays, and could go to {better}{self._why(entity, version)}"

    def recalled(self, entity: str, version: str | None) -> list[Recall]:
        """The recalls of what is installed."""
        if version is None:
            return []
        found = self.recalls[product_of(entity)]
        return [one for one in found if _covers(one, version)]

    def _why(self, entity: str, version: str | None) -> str:
        return ", though it is recalled" if self.recalled(entity, version) else ""

    # --- relations ---

    def _broken(
        self, installed: Mapping[str, str | None], entity: str, version: str | None
    ) -> Iterator[str]:
        """What is wrong between an entity at a version and what is installed beside it."""
        if version is not None:
            release = self._release(entity, version)
            yield from _unmet(release, entity, installed)
            for other, at in installed.items():
                if other != entity and at is not None:
                    theirs = self._release(other, at)
                    beside = {**installed, entity: version}
                    yield from (f"{other} {at}: {one}" for one in _unmet(theirs, other, beside))

    def _release(self, entity: str, version: str) -> Release:
        return self.catalogues.products[product_of(entity)].releases[version].release

    # --- targets ---

    def _could_go(
        self, installed: Mapping[str, str | None], entity: str, version: str | None
    ) -> str | None:
        """A release to which it may go, and should."""
        recalls = self.recalled(entity, version)
        for target in self._targets(entity, version, recalls):
            if not list(self._broken(installed, entity, target)):
                return target
        return None

    def _targets(self, entity: str, version: str | None, recalls: list[Recall]) -> list[str]:
        published = self.catalogues.products[product_of(entity)].releases
        clean = [one for one in published if not self.recalled(entity, one)]
        if version is None:
            return clean
        minimums = [one.roll_off.minimum_release for one in recalls]
        least = max((key(one) for one in minimums if one is not None), default=(0, 0, 0))
        back = bool(recalls) and all(one.roll_off.allow_downgrade for one in recalls)
        return [one for one in clean if key(one) >= least and (key(one) > key(version) or back)]


def _unmet(release: Release, entity: str, installed: Mapping[str, str | None]) -> Iterator[str]:
    for need in release.dependencies:
        found = _others(need.product, entity, installed)
        if not need.optional and not found:
            yield f"needs {need.product}, which is not there"
        for other, at in found.items():
            if not _in_range(at, need):
                yield f"needs {need.product} {need.minimum_version} to {need.maximum_version}, " + (
                    f"and {other} is at {at}"
                )
    for ban in release.incompatibilities:
        for other, at in _others(ban.product, entity, installed).items():
            if _in_range(at, ban):
                yield f"does not go with {other} at {at}"


def _others(product: str, entity: str, installed: Mapping[str, str | None]) -> dict[str, str]:
    return {
        name: at
        for name, at in installed.items()
        if at is not None and name != entity and product_of(name) == product
    }


def _in_range(version: str, given: Range) -> bool:
    if given.minimum_version is not None and key(version) < key(given.minimum_version):
        return False
    if given.maximum_version is None:
        return True
    for number, bound in zip(key(version), given.maximum_version.split("."), strict=True):
        if bound == "x":
            return True
        if number != int(bound):
            return number < int(bound)
    return True


def _covers(recall: Recall, version: str) -> bool:
    if recall.status is not RecallStatus.ACTIVE or version in recall.except_versions:
        return False
    if recall.single:
        return key(version) == key(recall.start)
    return key(recall.start) <= key(version) and (
        recall.end is None or key(version) < key(recall.end)
    )


def _is_stopped(status: EnvironmentStatus, entity: str, now: datetime) -> bool:
    return any(
        one.entity in (None, entity) and one.start <= now and (one.end is None or now < one.end)
        for one in status.suppressions
    )
