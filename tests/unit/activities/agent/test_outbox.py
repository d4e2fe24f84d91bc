"""Statuses arrive in order, at least once, whatever happens on the way."""

import asyncio

import pytest

from builders.tasks import status
from temporal_plans.activities.agent.host.status_outbox import NoSuchDestination, StatusOutbox
from temporal_plans.domain.tasks.statuses import TaskStatus


def running(sequence: int, *, told: bool = False) -> TaskStatus:
    return status("t", sequence=sequence, told=told)


class Receiver:
    """A workflow that can be away: ``errors`` are what the next attempts meet."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.got: list[tuple[int, ...]] = []
        self.delivered: list[int] = []
        self.all_delivered = asyncio.Event()
        self.expected = 0

    async def send(self, destination: str, statuses: tuple[TaskStatus, ...]) -> None:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        self.got.append(tuple(status.sequence for status in statuses))

    def note(self, status: TaskStatus) -> None:
        self.delivered.append(status.sequence)
        if len(self.delivered) == self.expected:
            self.all_delivered.set()

    async def post_all(self, *statuses: TaskStatus, to: str = "service/s") -> None:
        self.expected = len(self.delivered) + len(statuses)
        self.all_delivered.clear()
        outbox = StatusOutbox(self.send, self.note)
        for each in statuses:
            outbox.post(to, each)
        async with asyncio.timeout(10):
            await self.all_delivered.wait()
        await outbox.close(timeout=1)


async def test_statuses_of_one_moment_travel_together() -> None:
    receiver = Receiver()
    await receiver.post_all(running(1), running(2), running(3))
    assert receiver.got == [(1, 2, 3)]


async def test_many_are_sent_in_batches_in_order() -> None:
    receiver = Receiver()
    await receiver.post_all(*(running(number) for number in range(250)))
    assert [len(batch) for batch in receiver.got] == [100, 100, 50]
    assert receiver.delivered == list(range(250))


@pytest.mark.parametrize("error", [OSError("away"), RuntimeError("busy")])
async def test_failures_are_tried_again(error: Exception) -> None:
    receiver = Receiver(error, error)
    await receiver.post_all(running(1), running(2))
    assert receiver.got == [(1, 2)]


async def test_what_nobody_waits_for_is_dropped() -> None:
    receiver = Receiver(NoSuchDestination("service/s"))
    await receiver.post_all(running(1))
    assert (receiver.got, receiver.delivered) == ([], [1])


async def test_without_a_destination_nothing_is_sent() -> None:
    receiver = Receiver()
    await receiver.post_all(running(1), to="")
    assert (receiver.got, receiver.delivered) == ([], [1])


async def test_a_status_that_was_told_waits_for_company() -> None:
    receiver = Receiver()
    await receiver.post_all(running(1, told=True), running(2))
    assert receiver.got == [(1, 2)]
    await receiver.post_all(running(3, told=True))
    assert receiver.got == [(1, 2), (3,)]


async def test_a_status_that_comes_as_the_last_one_leaves_is_sent() -> None:
    receiver = Receiver()
    receiver.expected = 2

    def delivered(status: TaskStatus) -> None:
        receiver.note(status)
        if status.sequence == 1:  # to be posted when the sender has found nothing more to send
            asyncio.get_running_loop().call_soon(outbox.post, "service/s", status.but(sequence=2))

    outbox = StatusOutbox(receiver.send, delivered)
    outbox.post("service/s", running(1))
    async with asyncio.timeout(10):
        await receiver.all_delivered.wait()
    assert receiver.got == [(1,), (2,)]
    await outbox.close(timeout=1)


async def test_closing_tries_for_a_while_only() -> None:
    receiver = Receiver(*(OSError("away") for _ in range(1000)))
    outbox = StatusOutbox(receiver.send, receiver.note)
    outbox.post("service/s", running(1))
    async with asyncio.timeout(5):
        await outbox.close(timeout=0.1)
    assert receiver.delivered == []
