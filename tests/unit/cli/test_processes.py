"""What processes are started with, and what they say while their server is away."""

import itertools
import logging
from pathlib import Path

import pytest
import typer

from temporal_plans.cli.processes.agent_options import (
    OfferedResources,
    agent_settings,
    mount_disks,
    port_ranges,
    share,
)
from temporal_plans.cli.processes.core_lines import UnreachableFilter
from temporal_plans.cli.processes.local_cluster import LocalSettings
from temporal_plans.domain.cluster.agents import AgentResources, MountDisk
from temporal_plans.domain.values.ports import PortRange

MACHINE = AgentResources(cpus=4, memory=8000, disk=90_001)


@pytest.mark.parametrize("agents", [1, 2, 3, 7])
def test_agents_on_one_machine_share_it(agents: int) -> None:
    parts = [share(MACHINE, number, agents) for number in range(agents)]
    assert sum(part.cpus for part in parts) == pytest.approx(MACHINE.cpus, abs=0.01)
    assert sum(part.memory for part in parts) <= MACHINE.memory
    assert sum(part.disk for part in parts) <= MACHINE.disk


@pytest.mark.parametrize("agents", [1, 2, 3, 7])
def test_no_port_is_offered_twice(agents: int) -> None:
    ranges = [share(MACHINE, number, agents).ports[0] for number in range(agents)]
    assert [ranges[0].begin, ranges[-1].end] == [1025, 32000]
    for before, after in itertools.pairwise(ranges):
        assert before.end is not None
        assert after.begin == before.end + 1


def test_ports_of_the_server_are_not_offered() -> None:
    settings = LocalSettings(state_dir=Path(), port=1025, ui_port=32000)
    assert set(settings.server_ports) == {7233, 8233, 1025, 32000}
    ranges = share(MACHINE, 0, 1, settings.server_ports).ports
    assert [(one.begin, one.end) for one in ranges] == [(1026, 7232), (7234, 8232), (8234, 31999)]


def test_agents_of_a_local_cluster_do_not_offer_its_ports(tmp_path: Path) -> None:
    settings = LocalSettings(state_dir=tmp_path, agents=2, port=20000)
    resources = [settings.agent(number).resources for number in range(2)]
    ranges = [one for part in resources if part for one in part.ports]
    for port in (7233, 8233, 20000):
        assert not [one for one in ranges if (one.begin or 0) <= port <= (one.end or 0)]


def test_what_is_said_goes_before_what_is_measured() -> None:
    offered = OfferedResources(cpus=1, gpus=2, mounts=(MountDisk(path="/d", size=5),))
    assert offered.over(MACHINE) == MACHINE.but(
        cpus=1, gpus=2, mounts=(MountDisk(path="/d", size=5),)
    )


def test_agents_of_a_local_cluster_have_names_and_directories_of_their_own(tmp_path: Path) -> None:
    settings = LocalSettings(state_dir=tmp_path, agents=2, offered=OfferedResources(memory=64))
    one, two = settings.agent(0), settings.agent(1)
    assert (one.id, one.hostname, two.id, two.hostname) == (
        *("agent-1", "host-1"),
        *("agent-2", "host-2"),
    )
    assert one.work_dir != two.work_dir
    assert one.resources is not None
    assert one.resources.memory == 64


@pytest.mark.parametrize(
    ("text", "found"), [("8000-8100", (8000, 8100)), ("80", (80, 80)), ("1-65535", (1, 65535))]
)
def test_port_ranges(text: str, found: tuple[int, int]) -> None:
    assert port_ranges([text]) == (PortRange(begin=found[0], end=found[1]),)


@pytest.mark.parametrize("text", ["", "x", "9-1", "0-5", "1-65536", "1-2-3", "-5"])
def test_what_is_no_range_of_ports(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a range of ports"):
        port_ranges([text])


@pytest.mark.parametrize(
    ("text", "disk"),
    [
        ("/mnt/a=10", MountDisk(path="/mnt/a", size=10)),
        ("/mnt/a=10:fast", MountDisk(path="/mnt/a", size=10, profile="fast")),
    ],
)
def test_mount_disks(text: str, disk: MountDisk) -> None:
    assert mount_disks([text]) == (disk,)


@pytest.mark.parametrize("text", ["", "/mnt/a", "mnt=10", "/mnt/a=x", "/mnt/a=10:"])
def test_what_is_no_disk(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a disk"):
        mount_disks([text])


def test_an_agent_that_can_not_be_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(
        typer.BadParameter, match="'a b': not an agent's id; write 1 to 128 letters"
    ) as raised:
        agent_settings(OfferedResources(), id="a b", work_dir=tmp_path)
    assert raised.value.param_hint == "--id"


def test_a_work_directory_that_can_not_be_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(typer.BadParameter, match="file/work: Not a directory"):
        agent_settings(OfferedResources(), id="a", work_dir=file / "work")


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("core", logging.WARNING, "", 0, text, (), None)


def test_an_absent_server_is_told_once_a_minute() -> None:
    clock = Clock()
    lines = UnreachableFilter(clock)
    record = line("gRPC call poll_activity_task_queue retried 6 times")
    assert lines.filter(record)
    assert record.getMessage() == "the Temporal server does not answer; retrying"
    clock.time = 59
    assert not lines.filter(line("tcp connect error"))
    clock.time = 60
    assert lines.filter(line("tcp connect error"))


def test_other_lines_are_left_alone() -> None:
    lines = UnreachableFilter(Clock())
    record = line("Workflow task failed")
    assert lines.filter(record)
    assert lines.filter(record)
    assert record.getMessage() == "Workflow task failed"
