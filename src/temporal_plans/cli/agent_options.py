"""An agent's settings from what was said on the command line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from pydantic import ValidationError

from temporal_plans.activities.agent.machine import measure
from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.domain.cluster import AgentResources, MountDisk
from temporal_plans.domain.service import PortRange

_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_MOUNT = re.compile(r"(?P<path>/[^=]*)=(?P<size>\d+)(?::(?P<profile>.+))?")


@dataclass(frozen=True)
class OfferedResources:
    """What an agent is to offer where that isn't measured; None is left to the machine."""

    cpus: float | None = None
    memory: int | None = None
    disk: int | None = None
    gpus: float | None = None
    ports: tuple[PortRange, ...] = ()
    mounts: tuple[MountDisk, ...] = ()

    def over(self, measured: AgentResources) -> AgentResources:
        said = {
            name: value
            for name in ("cpus", "memory", "disk", "gpus", "ports", "mounts")
            if (value := getattr(self, name)) not in (None, ())
        }
        return measured.but(**said)


def agent_settings(offered: OfferedResources, **settings: Any) -> AgentSettings:
    """The settings, with what is offered on top of what the machine has.

    Raises typer.BadParameter when one of them can't be.
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
    """The machine's own; the work directory's disk counts, so it is made first."""
    work_dir.mkdir(parents=True, exist_ok=True)
    return measure(work_dir)


def port_ranges(texts: Iterable[str]) -> tuple[PortRange, ...]:
    """``8000-8100`` or ``8000``. Raises typer.BadParameter."""
    return tuple(_port_range(text) for text in texts)


def _port_range(text: str) -> PortRange:
    match = _PORTS.fullmatch(text)
    begin, end = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 0 < begin <= end <= 65535:
        raise typer.BadParameter(
            f"{text!r} is no range of ports such as 8000-8100", param_hint="--ports"
        )
    return PortRange(begin=begin, end=end)


def mount_disks(texts: Iterable[str]) -> tuple[MountDisk, ...]:
    """``/mnt/disk1=10240`` or, with a profile, ``/mnt/disk1=10240:fast``. Raises BadParameter."""
    return tuple(_mount_disk(text) for text in texts)


def _mount_disk(text: str) -> MountDisk:
    match = _MOUNT.fullmatch(text)
    if not match:
        raise typer.BadParameter(
            f"{text!r} is no disk such as /mnt/disk1=10240 or /mnt/disk1=10240:fast (size in MB)",
            param_hint="--mount",
        )
    return MountDisk(path=match["path"], size=int(match["size"]), profile=match["profile"])


def share(whole: AgentResources, number: int, of: int) -> AgentResources:
    """The part of one of several agents on a machine; their ports must not overlap."""
    if of == 1:
        return whole
    first, last = 1025, 32000
    width = (last - first + 1) // of
    begin = first + number * width
    end = last if number == of - 1 else begin + width - 1
    return whole.but(
        cpus=round(whole.cpus / of, 3),
        memory=whole.memory // of,
        disk=whole.disk // of,
        ports=(PortRange(begin=begin, end=end),),
    )
