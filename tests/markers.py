"""What the markers of tests say to fixtures."""

from collections.abc import Mapping
from typing import Any, cast

import pytest


def marked(request: pytest.FixtureRequest, name: str) -> Mapping[str, Any]:
    """The keywords of a test's marker; none without it."""
    marker = cast(pytest.Item, request.node).get_closest_marker(name)
    return marker.kwargs if marker else {}
