"""Ports of tasks on which other processes of the machine listen."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from acceptance.agent_bench import Bench, eventually, order, pod_spec, reservation, task_spec
from temporal_plans.activities.agent.host.listening import listening_ports
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.services.spec import PortSpec, ResourceSet
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.messages.tasks import LaunchInput


@pytest.fixture(params=[(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")], ids=["4", "6"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """Another process of the machine that listens: this one."""
    family, address = request.param
    with socket.socket(family) as listener:
        try:
            listener.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        listener.listen()
        yield listener


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def wants(port: int, cmd: str = "sleep 1000") -> LaunchInput:
    main = ResourceSet(id="main", memory=32, ports=(PortSpec(name="http", env_key="PORT"),))
    held = reservation(ReservedResource(id="p", set="main", kind="port", value=port, name="http"))
    return order(pod_spec(task_spec(cmd), main=main), held=held)


async def test_a_launch_on_a_port_in_use_fails_with_the_reason(
    agent: Bench, listener: socket.socket
) -> None:
    """After the pool was told of the port, so that the next launch gets another one."""
    reported: list[bool] = []

    async def report() -> None:
        reported.append(port_of(listener) in agent.runner.ports.in_use())

    agent.runner.ports.report = report
    status = await agent.launch(wants(port_of(listener)))
    assert status.state is TaskState.FAILED
    assert f"another process of this machine listens on {port_of(listener)}" in status.message
    assert reported == [True]
    assert agent.launches() == []


async def test_a_launch_waits_for_a_port_that_is_released(
    agent: Bench, listener: socket.socket
) -> None:
    launching = asyncio.create_task(agent.launch(wants(port_of(listener))))
    await eventually(lambda: bool(agent.runner.task_ids()), "it is being launched")
    listener.close()
    assert (await launching).state is TaskState.RUNNING


async def test_the_ports_of_its_own_tasks_are_not_in_use_by_others(agent: Bench) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = port_of(free)
    serve = (
        "exec python3 -c 'import os, socket, time; s = socket.create_server"
        '(("127.0.0.1", int(os.environ["PORT"]))); time.sleep(1000)\''
    )
    asked = wants(port, serve)
    assert (await agent.launch(asked)).state is TaskState.RUNNING
    await eventually(lambda: port in listening_ports(), "the task listens")
    assert port not in agent.runner.ports.in_use()
    await agent.restart()
    assert port not in agent.runner.ports.in_use()
    await agent.kill(asked.tasks[0].task_id)
    again = await agent.launch(wants(port, serve))
    assert again.state is TaskState.RUNNING


async def test_a_paused_task_needs_no_port(agent: Bench, listener: socket.socket) -> None:
    asked = wants(port_of(listener))
    paused = asked.but(tasks=tuple(one.but(paused=True) for one in asked.tasks))
    assert (await agent.launch(paused)).state is TaskState.RUNNING
