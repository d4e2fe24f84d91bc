"""What happens to a release when it is published."""

from temporal_plans.domain.fleets.versions import VersionKind, parse_version

_DEFAULTS = {
    VersionKind.RELEASE: ("DEV", "RELEASE_CANDIDATE", "RELEASE"),
    VersionKind.CANDIDATE: ("DEV", "RELEASE_CANDIDATE"),
}


def default_channels(version: str) -> tuple[str, ...]:
    """Return the channels that a release comes to when it is published, by the kind of its
    version."""
    found = parse_version(version)
    return _DEFAULTS.get(found.kind, ("DEV",)) if found else ()
