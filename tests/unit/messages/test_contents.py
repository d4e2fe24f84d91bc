"""The parts of contents as messages."""

import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.messages.contents import (
    CONTENT_LIMIT,
    HOLDERS_SIZE_LIMIT,
    PART_SIZE,
    PARTS_LIMIT,
    ContentHold,
    ContentPart,
    Holders,
)


@given(st.binary(max_size=2000))
def test_a_part_has_its_bytes_again(data: bytes) -> None:
    assert ContentPart.model_validate_json(ContentPart.of(data).model_dump_json()).data() == data


def test_the_largest_content_has_few_enough_parts() -> None:
    assert -(-CONTENT_LIMIT // PART_SIZE) <= PARTS_LIMIT


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "cut off", id="empty"),
        pytest.param("ä", "can't be expanded", id="no-base64"),
        pytest.param(packed(b"plain"), "can't be expanded", id="not-compressed"),
        pytest.param(packed(zlib.compress(b"half of it")[:-5]), "cut off", id="half"),
        pytest.param(packed(zlib.compress(bytes(CONTENT_LIMIT + 1))), "more than", id="a-bomb"),
    ],
)
def test_bytes_that_can_not_be_read(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ContentPart(packed=text).data()


@pytest.mark.parametrize(
    ("holders", "fit"),
    [
        pytest.param(("a" * 997,) * (HOLDERS_SIZE_LIMIT // 1000), True, id="ascii"),
        pytest.param(("a" * 997,) * (HOLDERS_SIZE_LIMIT // 1000) + ("a",), False, id="one-more"),
        pytest.param(("é" * 997,) * (HOLDERS_SIZE_LIMIT // 1000), False, id="escaped"),
    ],
)
def test_holders_are_bounded(holders: tuple[str, ...], fit: bool) -> None:
    """Else a content could be started that could not continue as new."""
    if fit:
        assert Holders(holders=holders).holders == holders
        return
    with pytest.raises(ValidationError, match="at most 400,000 fit"):
        Holders(holders=holders)
    with pytest.raises(ValidationError, match="at most 400,000 fit"):
        ContentPart(packed="", holders=holders)


@pytest.mark.parametrize("digest", ["", "a" * 63, "A" * 64, "a" * 64 + "\n"])
def test_a_hold_of_what_is_no_digest(digest: str) -> None:
    with pytest.raises(ValidationError):
        ContentHold(digest=digest, holder="service/web")
