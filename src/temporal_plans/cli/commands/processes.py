"""Commands that run processes: dev, demo, worker, agent, spoke."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ConnectionFlags

CpusOption = Annotated[
    float | None, typer.Option("--cpus", min=0.001, help="CPU cores to offer. [default: measured]")
]
MemoryOption = Annotated[
    int | None,
    typer.Option("--memory", min=1, metavar="MB", help="Memory to offer. [default: measured]"),
]
DiskOption = Annotated[
    int | None,
    typer.Option("--disk", min=1, metavar="MB", help="Disk space to offer. [default: measured]"),
]
GpusOption = Annotated[
    float | None, typer.Option("--gpus", min=0, help="GPUs to offer. [default: none]")
]
PortsOption = Annotated[
    list[str] | None,
    typer.Option("--ports", metavar="FIRST-LAST", help="Ports to offer; repeatable."),
]
MountOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        metavar="PATH=MB[:PROFILE]",
        help="A whole disk to offer for MOUNT volumes; repeatable.",
    ),
]
SecretsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secrets",
        metavar="PROVIDER",
        help="Source of secrets: file:DIR, env:PREFIX or python:MODULE:FUNCTION; repeatable.",
    ),
]
StateDirOption = Annotated[
    Path,
    typer.Option("--state-dir", metavar="DIR", file_okay=False, help="Directory of the state."),
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


LogLevelOption = Annotated[
    _LogLevel, typer.Option("--log-level", help="Least severity of log lines.")
]


def dev(
    agents: Annotated[int, typer.Option("--agents", min=1, max=100, help="Number of agents.")] = 1,
    state_dir: StateDirOption = Path(".temporal-plans"),
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="Port of the Temporal server. [default: 7233]"
        ),
    ] = None,
    ui_port: Annotated[
        int | None,
        typer.Option(
            "--ui-port", min=1, max=65535, help="Port of the web UI. [default: port + 1000]"
        ),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Run Temporal's web UI.")] = True,
    worker: Annotated[
        bool,
        typer.Option(
            "--worker/--no-worker",
            help="Run a worker. Without one, run your own on the same task queue: two workers share"
            " the plans, and only yours has your strategies and step kinds.",
        ),
    ] = True,
    keep_tasks: Annotated[
        bool, typer.Option("--keep-tasks", help="Leave tasks running when this command stops.")
    ] = False,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    disk: DiskOption = None,
    gpus: GpusOption = None,
    mount: MountOption = None,
) -> None:
    """Run everything on this machine: a Temporal server, a worker and agents.

    The machine's resources are split between the agents; --cpus and the other resource options set
    them for each agent. State is kept: the next `dev` in the same directory resumes from it.
    """
    from temporal_plans.cli.processes.signal_proxy import fork_behind_proxy

    proxy = fork_behind_proxy()  # before modules are loaded that start threads

    import asyncio
    from dataclasses import replace

    from temporal_plans.cli.processes.agent_options import OfferedResources, mount_disks
    from temporal_plans.cli.processes.developing import DEFAULT_PORT
    from temporal_plans.cli.processes.developing import dev as run_dev
    from temporal_plans.cli.processes.local_cluster import LocalSettings
    from temporal_plans.cli.processes.process import process

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
        worker=worker,
    )
    with process("temporal-plan-dev", log_level="error") as telemetry:
        settings = replace(settings, plugins=telemetry.plugins, runtime=telemetry.runtime)
        asyncio.run(run_dev(settings, proxy=proxy))


def demo(
    package: Annotated[
        bool,
        typer.Option(
            "--package",
            help="Show an operator package instead, on a Kubernetes control plane of its own.",
        ),
    ] = False,
    fleet: Annotated[
        bool,
        typer.Option(
            "--fleet",
            help="Show a fleet instead: a hub, and two environments with a Temporal server each.",
        ),
    ] = False,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="With --package: the cluster of this context of your kubeconfig, in a namespace"
            " that is made for it and removed.",
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout",
            metavar="DURATION",
            help="Time limit of a plan, with --fleet of a chapter: 90s, 2m ...",
        ),
    ] = "120s",
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir", metavar="DIR", file_okay=False, help="Keep the state in this directory."
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Do not remove the temporary state.")
    ] = False,
) -> None:
    """Deploy the service hello-world on its own Temporal server, and watch it.

    With --package an operator package is installed, changed, upgraded and uninstalled instead, on a
    Kubernetes control plane that `make control-plane` has built, or on the cluster of --context.
    With --fleet releases are published, promoted, rolled back and recalled in two environments
    instead, in about a minute. At the end everything is stopped and the state removed. Exits with 0
    if all went as it should, else 1.
    """
    from datetime import timedelta

    from temporal_plans.cli.inputs.durations import duration_of
    from temporal_plans.cli.processes.signal_proxy import fork_behind_proxy

    limit = duration_of(timeout, "--timeout", minimum=timedelta(milliseconds=1))
    if context is not None and not package:
        raise typer.BadParameter("needs --package", param_hint="--context")
    if fleet and package:
        raise typer.BadParameter("give either --package or --fleet")
    proxy = fork_behind_proxy()  # before modules are loaded that start threads

    import asyncio

    from temporal_plans.cli.processes.demo_state import check_modules, demo_state
    from temporal_plans.cli.processes.developing import demo as run_demo
    from temporal_plans.cli.processes.process import process

    directory = state_dir.resolve() if state_dir else None
    if package:
        check_modules(own_cluster=context is None)
        from temporal_plans.cli.processes.package_demo import PackageDemo, package_demo

        with (
            process("temporal-plan-demo", log_level="error") as telemetry,
            demo_state(directory, keep=keep) as folder,
        ):
            settings = PackageDemo(
                folder, context, limit, keep, telemetry.plugins, telemetry.runtime
            )
            raise typer.Exit(asyncio.run(package_demo(settings, proxy=proxy)))
    if fleet:
        from temporal_plans.cli.main import run
        from temporal_plans.cli.processes.fleet_demo import FleetDemo, fleet_demo

        with (
            process("temporal-plan-demo", log_level="error") as telemetry,
            demo_state(directory, keep=keep) as folder,
        ):
            story = FleetDemo(folder, limit, run, keep, telemetry.plugins, telemetry.runtime)
            raise typer.Exit(asyncio.run(fleet_demo(story, proxy=proxy)))
    with process("temporal-plan-demo", log_level="error") as telemetry:
        code = asyncio.run(
            run_demo(
                state_dir=directory,
                keep=keep,
                timeout=limit,
                plugins=telemetry.plugins,
                runtime=telemetry.runtime,
                proxy=proxy,
            )
        )
    raise typer.Exit(code)


def worker(
    flags: ConnectionFlags,
    task_queue: Annotated[
        str, typer.Option("--task-queue", metavar="NAME", help="The task queue of the plans.")
    ] = "plans",
    kubernetes: Annotated[
        list[str] | None,
        typer.Option(
            "--kubernetes",
            metavar="NAME[=KUBECONFIG[:CONTEXT]]",
            help="A cluster to execute tasks of packages in; repeatable. [default credentials: the"
            " pod's service account, else the machine's kubeconfig]",
        ),
    ] = None,
    kubernetes_only: Annotated[
        bool, typer.Option("--kubernetes-only", help="Serve the clusters, and no plans.")
    ] = False,
    secrets: SecretsOption = None,
    log_level: LogLevelOption = _LogLevel.INFO,
) -> None:
    """Run a worker: the process that executes plans and services. Any number may run.

    With --kubernetes it also executes the tasks of packages in a cluster: only such a worker needs
    the cluster's credentials. With your own strategies or step kinds, run your own worker with
    PlansPlugin instead.
    """
    import asyncio

    from temporal_plans.cli.processes.cluster_options import cluster_access
    from temporal_plans.cli.processes.process import WorkerSettings, process, run_worker_process

    clusters = cluster_access(kubernetes or ())
    for option, given in (("--kubernetes-only", kubernetes_only), ("--secrets", secrets)):
        if given and not clusters:
            raise typer.BadParameter("needs --kubernetes NAME", param_hint=option)
    settings = WorkerSettings(
        task_queue=None if kubernetes_only else task_queue,
        clusters=clusters,
        secrets=tuple(secrets or ()),
    )
    with process("temporal-plan-worker", log_level=log_level) as telemetry:
        asyncio.run(run_worker_process(flags, telemetry, settings))


def agent(
    flags: ConnectionFlags,
    agent_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            envvar="TEMPORAL_PLAN_AGENT_ID",
            help="The agent's id, the same at every start. [default: the host's name]",
        ),
    ] = None,
    hostname: Annotated[
        str | None,
        typer.Option(
            "--hostname",
            metavar="NAME",
            envvar="TEMPORAL_PLAN_AGENT_HOSTNAME",
            help="The host's name for placement rules. [default: the host's name]",
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            "--pool", metavar="NAME", envvar="TEMPORAL_PLAN_AGENT_POOL", help="The pool to join."
        ),
    ] = "default",
    work_dir: Annotated[
        Path,
        typer.Option(
            "--work-dir",
            metavar="DIR",
            file_okay=False,
            envvar="TEMPORAL_PLAN_AGENT_WORK_DIR",
            help="Directory of sandboxes, volumes and records.",
        ),
    ] = Path("/var/lib/temporal-plans"),
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="NAME=VALUE",
            help="An attribute for placement rules; repeatable.",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", help="Region for placement rules.")
    ] = None,
    zone: Annotated[str | None, typer.Option("--zone", help="Zone for placement rules.")] = None,
    cpus: CpusOption = None,
    memory: MemoryOption = None,
    disk: DiskOption = None,
    gpus: GpusOption = None,
    ports: PortsOption = None,
    mount: MountOption = None,
    secrets: SecretsOption = None,
    isolation: Annotated[
        _Isolation,
        typer.Option(
            "--isolation", help="Limit tasks by cgroup v2, or only account their resources."
        ),
    ] = _Isolation.AUTO,
    rlimits: Annotated[
        _RLimits,
        typer.Option(
            "--rlimits",
            help="An rlimit above the agent's own fails the task (require), or is lowered (lower).",
        ),
    ] = _RLimits.REQUIRE,
    root_tasks: Annotated[
        bool, typer.Option("--root-tasks/--no-root-tasks", help="Whether tasks may run as root.")
    ] = True,
    shell: Annotated[
        str,
        typer.Option(
            "--shell",
            metavar="NAME",
            help="Shell of commands and checks: bash, sh or a path; auto is bash, else sh.",
        ),
    ] = "auto",
    task_path: Annotated[
        str | None,
        typer.Option("--task-path", metavar="PATH", help="PATH of tasks. [default: the system's]"),
    ] = None,
    host_address: Annotated[
        str | None,
        typer.Option(
            "--host-address",
            metavar="IP",
            help="MESOS_CONTAINER_IP of tasks. [default: that of the default route]",
        ),
    ] = None,
    dns_domain: Annotated[
        str | None,
        typer.Option(
            "--dns-domain",
            metavar="NAME",
            help="Domain of FRAMEWORK_HOST, if your DNS has such names. [default: none]",
        ),
    ] = None,
    kill_tasks: Annotated[
        bool, typer.Option("--kill-tasks-on-exit", help="Kill all tasks when the agent stops.")
    ] = False,
    log_level: LogLevelOption = _LogLevel.INFO,
) -> None:
    """Run an agent: the process on a machine that runs the tasks there.

    Tasks survive the agent: started again with the same work directory, it takes them over.
    """
    import asyncio
    import socket

    from temporal_plans.cli.inputs.pairs import pairs
    from temporal_plans.cli.processes.agent_options import (
        OfferedResources,
        agent_settings,
        mount_disks,
        port_ranges,
    )
    from temporal_plans.cli.processes.process import process, run_agent_process

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
        shell=shell,
        address=host_address,
        dns_domain=dns_domain,
        **({} if task_path is None else {"task_path": task_path}),
    )
    with process("temporal-plan-agent", log_level=log_level) as telemetry:
        asyncio.run(run_agent_process(flags, telemetry, settings))


def _hub(name: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(f"--hub{name}", metavar=metavar, help=text)


def spoke(
    flags: ConnectionFlags,
    environment: Annotated[
        str,
        typer.Option(
            "--environment",
            metavar="NAME",
            envvar="TEMPORAL_PLAN_SPOKE_ENVIRONMENT",
            help="The environment whose plans it carries out.",
        ),
    ],
    hub: Annotated[
        str,
        typer.Option(
            "--hub",
            metavar="HOST:PORT",
            envvar="TEMPORAL_PLAN_SPOKE_HUB",
            help="Address of the hub: the Temporal server that has the environment.",
        ),
    ],
    hub_namespace: Annotated[
        str | None, _hub("-namespace", "Namespace of the hub. [default: default]", "NAME")
    ] = None,
    hub_profile: Annotated[
        str | None, _hub("-profile", "Profile of the configuration file for the hub.", "NAME")
    ] = None,
    hub_api_key: Annotated[
        str | None,
        typer.Option(
            "--hub-api-key",
            metavar="KEY",
            envvar="TEMPORAL_PLAN_SPOKE_HUB_API_KEY",
            help="API key for the hub.",
        ),
    ] = None,
    hub_tls: Annotated[
        bool | None,
        typer.Option("--hub-tls/--no-hub-tls", help="Encrypt the connection to the hub."),
    ] = None,
    hub_tls_ca_path: Annotated[
        Path | None, _hub("-tls-ca-path", "CA certificate of the hub.", "FILE")
    ] = None,
    hub_tls_cert_path: Annotated[
        Path | None, _hub("-tls-cert-path", "Client certificate for the hub.", "FILE")
    ] = None,
    hub_tls_key_path: Annotated[
        Path | None, _hub("-tls-key-path", "Key of that certificate.", "FILE")
    ] = None,
    hub_tls_server_name: Annotated[
        str | None, _hub("-tls-server-name", "Name in the hub's certificate.", "NAME")
    ] = None,
    work_dir: Annotated[
        Path,
        typer.Option(
            "--work-dir",
            metavar="DIR",
            file_okay=False,
            envvar="TEMPORAL_PLAN_SPOKE_WORK_DIR",
            help="Directory of the spoke's identity.",
        ),
    ] = Path("/var/lib/temporal-plans"),
    task_queue: Annotated[
        str, typer.Option("--task-queue", metavar="NAME", help="The task queue of the own worker.")
    ] = "plans",
    log_level: LogLevelOption = _LogLevel.INFO,
) -> None:
    """Run a spoke: it carries out the plans of an environment on the Temporal server beside it.

    The environment, with `spoke: true` in its settings, is at the hub. The connection options are
    those of the spoke's own server, where a worker runs, too; the --hub options are those of the
    hub. The spoke only connects outwards. Started again with the same work directory, it goes on.
    """
    import asyncio

    from pydantic import SecretStr

    from temporal_plans.cli.inputs.fleet_names import place_of
    from temporal_plans.cli.processes.process import process, run_spoke_process
    from temporal_plans.client.temporal.connection import Connection
    from temporal_plans.worker.spoke import SpokeSettings

    connection = Connection(
        address=hub,
        namespace=hub_namespace,
        profile=hub_profile,
        api_key=SecretStr(hub_api_key) if hub_api_key else None,
        tls=hub_tls,
        tls_ca_path=hub_tls_ca_path,
        tls_cert_path=hub_tls_cert_path,
        tls_key_path=hub_tls_key_path,
        tls_server_name=hub_tls_server_name,
    )
    settings = SpokeSettings(
        environment=place_of(environment, entity=False).environment,
        work_dir=work_dir,
        task_queue=task_queue,
    )
    with process("temporal-plan-spoke", log_level=log_level) as telemetry:
        asyncio.run(run_spoke_process(flags, telemetry, connection, settings))


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        dev,
        "dev",
        "temporal-plan dev",
        "temporal-plan dev --agents 3 --cpus 2 --memory 4096",
        connection=False,
    )
    offer(
        app,
        demo,
        "demo",
        "temporal-plan demo",
        "temporal-plan demo --package",
        "temporal-plan demo --package --context kind-kind --timeout 10m",
        "temporal-plan demo --fleet",
        connection=False,
    )
    offer(
        app,
        worker,
        "worker",
        "temporal-plan worker --address temporal.example.org:7233 --namespace production",
        "temporal-plan worker --kubernetes prod=~/.kube/config:prod --secrets file:/run/secrets",
    )
    offer(
        app,
        agent,
        "agent",
        "temporal-plan agent --id db-1 --attribute rack=r7 --work-dir /var/lib/temporal-plans",
        "temporal-plan agent --id gpu-1 --gpus 4 --mount /mnt/nvme0=512000:fast",
    )
    offer(
        app,
        spoke,
        "spoke",
        "temporal-plan spoke --environment prod-eu --hub hub.example.org:7233",
        "temporal-plan spoke --environment prod-eu --hub hub.example.org:7233 --hub-namespace eu",
    )
