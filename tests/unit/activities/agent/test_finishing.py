"""Work that runs to its end although nobody waits for it any more."""

import asyncio

import pytest

from temporal_plans.activities.agent.host.finishing import finish_despite_cancellation


async def test_the_result_is_passed_on() -> None:
    assert await finish_despite_cancellation(asyncio.sleep(0, "done")) == "done"


async def test_a_failure_is_passed_on() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await finish_despite_cancellation(fail())


@pytest.mark.parametrize("fails", [False, True])
async def test_cancelled_it_ends_first(fails: bool) -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        await may_end.wait()
        ended.set()
        if fails:
            raise LookupError

    waiting = asyncio.create_task(finish_despite_cancellation(work(), stop=may_end.set))
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
