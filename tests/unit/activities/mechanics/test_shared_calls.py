"""Equal questions are asked once, and an answer is never older than its question."""

import asyncio

import pytest

from temporal_plans.activities.mechanics.shared_calls import SharedCalls


class Source:
    """Counts calls; each answers its number when it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.gate = asyncio.Event()

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        await self.gate.wait()
        return number


async def test_a_question_during_a_call_has_the_answer_of_the_next() -> None:
    shared, source = SharedCalls[int](), Source()
    first = asyncio.create_task(shared.ask("key", source))
    while not source.calls:
        await asyncio.sleep(0)
    later = [asyncio.create_task(shared.ask("key", source)) for _ in range(50)]
    await asyncio.sleep(0)
    source.gate.set()
    assert await first == 1
    assert await asyncio.gather(*later) == [2] * 50
    assert await shared.ask("key", source) == 3
    assert sorted(await asyncio.gather(*(shared.ask(key, source) for key in "ab"))) == [4, 5]


async def test_a_cancelled_question_leaves_the_answer_to_the_others() -> None:
    shared, source = SharedCalls[int](), Source()
    one, other = (asyncio.create_task(shared.ask("key", source)) for _ in range(2))
    while not source.calls:
        await asyncio.sleep(0)
    one.cancel()
    source.gate.set()
    assert await other == 1
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_an_error_is_that_of_all_who_asked_and_of_no_other() -> None:
    shared = SharedCalls[int]()

    async def fails() -> int:
        raise ValueError("no answer")

    async def answers() -> int:
        return 1

    found = await asyncio.gather(
        *(shared.ask("key", fails) for _ in range(2)), return_exceptions=True
    )
    assert [str(one) for one in found] == ["no answer"] * 2
    assert await shared.ask("key", answers) == 1
