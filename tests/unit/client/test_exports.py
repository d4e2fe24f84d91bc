"""The names of ``temporal_plans.client``, which are imported when they are asked for."""

import pytest

from temporal_plans import client


def test_every_name_is_there() -> None:
    for name in client.__all__:
        assert getattr(client, name).__name__ == name


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(client, "Nothing")  # noqa: B009
