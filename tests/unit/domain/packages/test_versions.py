"""Versions of Kubernetes are compared by their first two numbers."""

import pytest

from temporal_plans.domain.packages.versions import is_older


@pytest.mark.parametrize(
    ("found", "needed", "older"),
    [
        ("v1.24.9", "1.25", True),
        ("v1.25.0", "1.25.3", False),
        ("v1.36.3", "1.9", False),
        ("v1.28.3-gke.100", "v1.29", True),
        ("v1.28.3+k3s1", "1.28", False),
        ("v1.28.3", "2", True),
        ("unknown", "1.25", False),
        ("v1.25.0", "", False),
    ],
)
def test_is_older(found: str, needed: str, older: bool) -> None:
    assert is_older(found, needed) is older
