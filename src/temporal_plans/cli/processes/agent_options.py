"""The settings of an agent from the options of the command line."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from temporal_plans.activities.agent.host.machine import measure
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.domain.cluster.agents import AgentResources, MountDisk
from temporal_plans.domain.values.ports import PortRange

_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_MOUNT = re.compile(r"(?P<path>/[^=]*)=(?P<size>\d+)(?::(?P<profile>.+))?")


@dataclass(frozen=True)
class OfferedResources:
    """The resources that an agent offers; None means as measured on the machine."""

    cpus: float | None = None
    memory: int | None = None
    disk: int | None = None
    gpus: float | None = None
    ports: tuple[PortRange, ...] = ()
    mounts: tuple[MountDisk, ...] = ()

    def over(self, measured: AgentResources) -> AgentResources:
        """Return the measured resources with those that are set here."""
        own = {
            name: value
            for name in ("cpus", "memory", "disk", "gpus", "ports", "mounts")
            if (value := getattr(self, name)) not in (None, ())
        }
        return measured.but(**own)


def agent_settings(offered: OfferedResources, **settings: Any) -> AgentSettings:
    """Return the settings, with the offered resources in place of the measured ones.

    Raises typer.BadParameter for an invalid setting.
    """
    try:
        checked = AgentSettings(**settings)
        return checked.but(resources=offered.over(measured(checked.work_dir)))
    except ValidationError as error:
        fault = error.errors()[0]
        option = "--" + str(fault["loc"][0]).replace("_", "-")
        raise typer.BadParameter(
            f"{fault['input']!r}: {fault['msg'].removeprefix('Value error, ')}", param_hint=option
        ) from error
    except OSError as error:
        raise typer.BadParameter(
            f"{error.filename}: {error.strerror}", param_hint="--work-dir"
        ) from error


def measured(work_dir: Path) -> AgentResources:
    """Measure the machine. Creates the work directory, whose disk is measured."""
    work_dir.mkdir(parents=True, exist_ok=True)
    return measure(work_dir)


def port_ranges(texts: Iterable[str]) -> tuple[PortRange, ...]:
    """Return the ranges of ``8000-8100`` or ``8000``. Raises typer.BadParameter."""
    return tuple(_port_range(text) for text in texts)


def _port_range(text: str) -> PortRange:
    match = _PORTS.fullmatch(text)
    begin, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 0 < begin <= end <= 65535:
        raise typer.BadParameter(
            f"not a range of ports (found {text!r}); write for example 8000-8100",
            param_hint="--ports",
        )
    return PortRange(begin=begin, end=end)


def mount_disks(texts: Iterable[str]) -> tuple[MountDisk, ...]:
    """Return the disks of ``/mnt/disk1=10240`` or, with a profile, ``/mnt/disk1=10240:fast``.

    Sizes are in MB. Raises typer.BadParameter.
    """
    return tuple(_mount_disk(text) for text in texts)


def _mount_disk(text: str) -> MountDisk:
    match = _MOUNT.fullmatch(text)
    if not match:
        raise typer.BadParameter(
            f"not a disk (found {text!r}); write for example /mnt/disk1=10240 or "
            "/mnt/disk1=10240:fast, with the size in MB",
            param_hint="--mount",
        )
    return MountDisk(path=match["path"], size=int(match["size"]), profile=match["profile"])


def share(
    whole: AgentResources, number: int, of: int, left_out: Collection[int] = ()
) -> AgentResources:
    """Return the share of agent ``number`` of ``of`` on a machine; port ranges do not overlap.

    ``left_out`` are ports of other processes.
    """
    first, last = 1025, 32000
    width = (last - first + 1) // of
    begin = first + number * width
    end = last if number == of - 1 else begin + width - 1
    return whole.but(
        cpus=whole.cpus if of == 1 else round(whole.cpus / of, 3),
        memory=whole.memory // of,
        disk=whole.disk // of,
        ports=tuple(_without(begin, end, left_out)),
    )


def _without(begin: int, end: int, left_out: Collection[int]) -> Iterator[PortRange]:
    for port in sorted(port for port in set(left_out) if begin <= port <= end):
        if begin < port:
            yield PortRange(begin=begin, end=port - 1)
        begin = port + 1
    if begin <= end:
        yield PortRange(begin=begin, end=end)
