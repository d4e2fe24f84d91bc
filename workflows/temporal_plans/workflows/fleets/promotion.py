"""The place where releases move on from channel to channel by themselves."""

from datetime import datetime
from typing import NamedTuple

from temporal_plans.messages.fleets import ProductState


class Promoted(NamedTuple):
    """A product after its pipelines were looked at, and when to look at them again."""

    state: ProductState
    again: datetime | None


def promote(state: ProductState, now: datetime) -> Promoted:
    """Return the product after what its pipelines promote or recall by now. There are no pipelines
    yet: releases are on the channels that they were published to."""
    return Promoted(state, None)
