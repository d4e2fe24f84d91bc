"""Requests that come while one is under way go together with the next."""

import asyncio
from collections.abc import Sequence

import pytest

from temporal_plans.activities.mechanics.joined_calls import JoinedCalls


class Target:
    """Notes what it is sent, when it is let go."""

    def __init__(self) -> None:
        self.sent: list[list[int]] = []
        self.begun = 0
        self.gate = asyncio.Event()

    async def __call__(self, items: Sequence[int]) -> None:
        self.begun += 1
        await self.gate.wait()
        self.sent.append(list(items))


async def begun(target: Target) -> None:
    while not target.begun:
        await asyncio.sleep(0)


async def test_what_comes_during_a_call_goes_with_the_next() -> None:
    calls, target = JoinedCalls[int](), Target()
    first = asyncio.create_task(calls.send("key", 0, target))
    await begun(target)
    later = [asyncio.create_task(calls.send("key", number, target)) for number in range(1, 100)]
    await asyncio.sleep(0)
    target.gate.set()
    await asyncio.gather(first, *later)
    assert target.sent == [[0], list(range(1, 100))]
    await asyncio.gather(*(calls.send(key, 7, target) for key in "ab"))
    assert target.sent[2:] == [[7], [7]]


async def test_an_error_is_that_of_all_who_were_sent_and_of_no_other() -> None:
    calls, target = JoinedCalls[int](), Target()

    async def fails(items: Sequence[int]) -> None:
        raise ValueError(f"{len(items)} refused")

    found = await asyncio.gather(
        *(calls.send("key", number, fails) for number in range(2)), return_exceptions=True
    )
    assert list(map(str, found)) == ["2 refused"] * 2
    target.gate.set()
    await calls.send("key", 3, target)
    assert target.sent == [[3]]


async def test_a_cancelled_one_leaves_the_others_in_the_call() -> None:
    calls, target = JoinedCalls[int](), Target()
    one, other = (asyncio.create_task(calls.send("key", number, target)) for number in range(2))
    await begun(target)
    one.cancel()
    target.gate.set()
    await other
    assert target.sent == [[0, 1]]
    with pytest.raises(asyncio.CancelledError):
        await one
