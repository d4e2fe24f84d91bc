"""Commands that run something: dev, demo, worker, agent."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import ConnectionFlags

CpusOption = Annotated[
    float | None, typer.Option("--cpus", min=0.001, help="Cores offered; measured if not said.")
]
MemoryOption = Annotated[
    int | None, typer.Option("--memory", min=1, metavar="MB", help="Memory offered.")
]
DiskOption = Annotated[
    int | None, typer.Option("--disk", min=1, metavar="MB", help="Disk space offered.")
]
GpusOption = Annotated[
    float | None, typer.Option("--gpus", min=0, help="GPUs offered; none if not said.")
]
PortsOption = Annotated[
    list[str] | None,
    typer.Option("--ports", metavar="FIRST-LAST", help="Ports offered; repeatable."),
]
MountOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        metavar="PATH=MB[:PROFILE]",
        help="A whole disk offered for MOUNT volumes; repeatable.",
    ),
]
StateDirOption = Annotated[
    Path, typer.Option("--state-dir", metavar="DIR", file_okay=False, help="Where state is kept.")
]


class _Isolation(StrEnum):
    AUTO = "auto"
    CGROUP_V2 = "cgroup-v2"
    ACCOUNTED = "accounted"


class _RLimits(StrEnum):
    REQUIRE = "require"
    LOWER = "lower"


class _LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogLevelOption = Annotated[_LogLevel, typer.Option("--log-level", help="How much is told.")]


def dev(
    agents: Annotated[
        int, typer.Option("--agents", min=1, max=100, help="Agents on this machine.")
    ] = 1,
    state_dir: StateDirOption = Path(".temporal-plans"),
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Temporal's. [default: 7233]")
    ] = None,
    ui_port: Annotated[
        int | None,
        typer.Option("--ui-port", min=1, max=65535, help="The web UI's. [default: port + 1000]"),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Temporal's web UI.")] = True,
    keep_tasks: Annotated[
        bool, typer.Option("--keep-tasks", help="Let tasks go on when this stops.")
    ] = False,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    disk: DiskOption = None,
    gpus: GpusOption = None,
    mount: MountOption = None,
) -> None:
    """Run everything on this machine: a Temporal server, a worker and agents.

    The machine's resources are split between the agents, unless said; --cpus and the like are for
    each of them. State is kept, so that the next `dev` in the same directory goes on from it.
    """
    from temporal_plans.cli.front import behind_a_front

    front = behind_a_front()  # before anything is loaded that has threads

    import asyncio
    from dataclasses import replace

    from temporal_plans.cli.agent_options import OfferedResources, mount_disks
    from temporal_plans.cli.developing import DEFAULT_PORT
    from temporal_plans.cli.developing import dev as run_dev
    from temporal_plans.cli.local_cluster import LocalSettings
    from temporal_plans.cli.process import process

    port = port or DEFAULT_PORT
    settings = LocalSettings(
        state_dir=state_dir.resolve(),
        agents=agents,
        port=port,
        ui=ui,
        ui_port=ui_port or min(port + 1000, 65535),
        offered=OfferedResources(
            cpus=cpus, memory=memory, disk=disk, gpus=gpus, mounts=mount_disks(mount or ())
        ),
        kill_tasks=not keep_tasks,
    )
    with process("temporal-plan-dev", log_level="error") as telemetry:
        settings = replace(settings, plugins=telemetry.plugins, runtime=telemetry.runtime)
        asyncio.run(run_dev(settings, front=front))


def demo(
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="How long it may take: 90s, 2m ...")
    ] = "120s",
    state_dir: Annotated[
        Path | None,
        typer.Option("--state-dir", metavar="DIR", file_okay=False, help="Keep state here."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Do not remove the temporary state.")
    ] = False,
) -> None:
    """Deploy the service hello-world on a Temporal server of its own, and watch it.

    Everything is stopped at the end, and its state removed. 0 if the plan was COMPLETE, else 1.
    """
    from datetime import timedelta

    from temporal_plans.cli.front import behind_a_front
    from temporal_plans.domain.model import parse_duration

    limit = parse_duration(timeout)
    if not isinstance(limit, timedelta) or limit <= timedelta():
        raise typer.BadParameter(
            f"{timeout!r} is no time such as 90s or 2m", param_hint="--timeout"
        )
    front = behind_a_front()  # before anything is loaded that has threads

    import asyncio

    from temporal_plans.cli.developing import demo as run_demo
    from temporal_plans.cli.process import process

    directory = state_dir.resolve() if state_dir else None
    with process("temporal-plan-demo", log_level="error") as telemetry:
        code = asyncio.run(
            run_demo(
                state_dir=directory,
                keep=keep,
                timeout=limit,
                plugins=telemetry.plugins,
                runtime=telemetry.runtime,
                front=front,
            )
        )
    raise typer.Exit(code)


def worker(
    flags: ConnectionFlags,
    task_queue: Annotated[
        str, typer.Option("--task-queue", metavar="NAME", help="The queue of the plans.")
    ] = "plans",
    log_level: LogLevelOption = _LogLevel.INFO,
) -> None:
    """Run a worker: the process that moves plans and services on. Any number may run.

    Developers with strategies and steps of their own run a worker of their own with PlansPlugin.
    """
    import asyncio

    from temporal_plans.cli.process import process, run_a_worker

    with process("temporal-plan-worker", log_level=log_level) as telemetry:
        asyncio.run(run_a_worker(flags, telemetry, task_queue))


def agent(
    flags: ConnectionFlags,
    agent_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            envvar="TEMPORAL_PLAN_AGENT_ID",
            help="Its name, the same at every start. [default: the host's name]",
        ),
    ] = None,
    hostname: Annotated[
        str | None,
        typer.Option(
            "--hostname",
            metavar="NAME",
            envvar="TEMPORAL_PLAN_AGENT_HOSTNAME",
            help="The host's name for placement. [default: the host's name]",
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            "--pool", metavar="NAME", envvar="TEMPORAL_PLAN_AGENT_POOL", help="The pool it joins."
        ),
    ] = "default",
    work_dir: Annotated[
        Path,
        typer.Option(
            "--work-dir",
            metavar="DIR",
            file_okay=False,
            envvar="TEMPORAL_PLAN_AGENT_WORK_DIR",
            help="Sandboxes, volumes, records.",
        ),
    ] = Path("/var/lib/temporal-plans"),
    attribute: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="NAME=VALUE", help="For placement; repeatable."),
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="For placement.")] = None,
    zone: Annotated[str | None, typer.Option("--zone", help="For placement.")] = None,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    disk: DiskOption = None,
    gpus: GpusOption = None,
    ports: PortsOption = None,
    mount: MountOption = None,
    secrets: Annotated[
        list[str] | None,
        typer.Option(
            "--secrets",
            metavar="PROVIDER",
            help="Where secrets are: file:DIR, env:PREFIX or python:MODULE:FUNCTION; repeatable.",
        ),
    ] = None,
    isolation: Annotated[
        _Isolation,
        typer.Option("--isolation", help="Limit tasks by cgroup v2, or only account for them."),
    ] = _Isolation.AUTO,
    rlimits: Annotated[
        _RLimits,
        typer.Option(
            "--rlimits",
            help="A pod's rlimit above what the agent may set fails its task, or is lowered.",
        ),
    ] = _RLimits.REQUIRE,
    root_tasks: Annotated[
        bool, typer.Option("--root-tasks/--no-root-tasks", help="May tasks run as root?")
    ] = True,
    kill_tasks: Annotated[
        bool, typer.Option("--kill-tasks-on-exit", help="End all tasks when the agent stops.")
    ] = False,
    log_level: LogLevelOption = _LogLevel.INFO,
) -> None:
    """Run an agent: the process on a machine that runs the tasks there.

    Tasks outlive it: started again with the same work directory, it takes them over.
    """
    import asyncio
    import socket

    from temporal_plans.cli.agent_options import (
        OfferedResources,
        agent_settings,
        mount_disks,
        port_ranges,
    )
    from temporal_plans.cli.pairs import pairs
    from temporal_plans.cli.process import process, run_an_agent

    offered = OfferedResources(
        cpus=cpus,
        memory=memory,
        disk=disk,
        gpus=gpus,
        ports=port_ranges(ports or ()),
        mounts=mount_disks(mount or ()),
    )
    host = socket.gethostname()
    settings = agent_settings(
        offered,
        id=agent_id or host,
        hostname=hostname or host,
        pool=pool,
        attributes=pairs(attribute or (), "--attribute"),
        region=region,
        zone=zone,
        work_dir=work_dir,
        secrets=tuple(secrets or ()),
        rlimits=rlimits.value,
        isolation=isolation.value,
        allow_root_tasks=root_tasks,
        kill_tasks_on_exit=kill_tasks,
    )
    with process("temporal-plan-agent", log_level=log_level) as telemetry:
        asyncio.run(run_an_agent(flags, telemetry, settings))


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        dev,
        "dev",
        "temporal-plan dev",
        "temporal-plan dev --agents 3 --cpus 2 --memory 4096",
        connection=False,
    )
    offer(app, demo, "demo", "temporal-plan demo", connection=False)
    offer(
        app,
        worker,
        "worker",
        "temporal-plan worker --address temporal.example.org:7233 --namespace production",
    )
    offer(
        app,
        agent,
        "agent",
        "temporal-plan agent --id db-1 --attribute rack=r7 --work-dir /var/lib/temporal-plans",
        "temporal-plan agent --id gpu-1 --gpus 4 --mount /mnt/nvme0=512000:fast",
    )
