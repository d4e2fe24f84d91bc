"""Channels: what a release needs to come to one, and those that a release comes to by itself."""

from pydantic import Field

from temporal_plans.domain.fleets.names import ShortName, Text
from temporal_plans.domain.fleets.promotion.labels import LabelRequirements
from temporal_plans.domain.fleets.versions import VersionKind, parse_version
from temporal_plans.domain.values.model import Value

DEVELOPMENT, CANDIDATES, RELEASES = "DEV", "RELEASE_CANDIDATE", "RELEASE"
DEFAULT_CHANNELS = (DEVELOPMENT, CANDIDATES, RELEASES)
"""The channels that releases come to when they are published, by the kind of their version. They
require no labels, and no pipeline leads to them."""


class ChannelOptions(Value):
    """What a release needs to come to a channel."""

    labels: LabelRequirements = Field(
        default={},
        description="Labels that a release needs to come to the channel, each with the values that "
        "are allowed (none: any). A release that loses one later stays.",
    )
    archived: bool = Field(default=False, description="No release comes to it any more.")
    description: Text = Field(default="", description="For people.")


class Channel(ChannelOptions):
    """A named set of releases, of any number of products."""

    name: ShortName


def default_channels(version: str) -> tuple[str, ...]:
    """Return the channels that a version comes to when it is published."""
    found = parse_version(version)
    kind = found.kind if found else VersionKind.OTHER
    if kind is VersionKind.RELEASE:
        return DEFAULT_CHANNELS
    return (DEVELOPMENT, CANDIDATES) if kind is VersionKind.CANDIDATE else (DEVELOPMENT,)
