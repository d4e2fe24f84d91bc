"""Which changes of a version cross an offline migration."""

import pytest

from temporal_plans.domain.fleets.downtime import crosses_offline_migration
from temporal_plans.domain.fleets.releases import Release


def _release(version: str, **steps: str) -> Release:
    """A release with migrations: ``m1="offline"`` starts from the schema 1."""
    migrations = [{"type": kind, "from": int(name[1:])} for name, kind in steps.items()]
    return Release.model_validate({"version": version, "schema_migrations": migrations})


OLD = _release("1.0.0", m1="offline")
NEW = _release("1.1.0", m1="offline", m2="offline")
ONLINE = _release("1.2.0", m1="offline", m2="offline", m3="online")
SHORTER = _release("2.0.0", m2="offline")
NIGHTLY = _release("1.1.0-nightly", m1="offline", m2="offline")


@pytest.mark.parametrize(
    ("current", "target", "crossed"),
    [
        pytest.param(OLD, NEW, True, id="up"),
        pytest.param(NEW, OLD, True, id="down"),
        pytest.param(NEW, NEW, False, id="nowhere"),
        pytest.param(NEW, ONLINE, False, id="up-online"),
        pytest.param(ONLINE, NEW, False, id="down-online"),
        pytest.param(NEW, SHORTER, False, id="up-to-one-that-dropped-an-old-one"),
        pytest.param(SHORTER, NEW, False, id="down-from-one-that-dropped-an-old-one"),
        pytest.param(OLD, NIGHTLY, True, id="without-an-order"),
        pytest.param(NIGHTLY, OLD, True, id="back-without-an-order"),
        pytest.param(None, OLD, True, id="from-an-unknown-release"),
    ],
)
def test_an_offline_migration_between_two_releases_counts_both_ways(
    current: Release | None, target: Release, crossed: bool
) -> None:
    assert crosses_offline_migration(current, target) is crossed
