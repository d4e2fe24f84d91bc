"""Prepares a task for its start: fills the sandbox and builds the supervisor's specification."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from temporal_plans.activities.agent.host.address import machine_address
from temporal_plans.activities.agent.host.finishing import finish_despite_cancellation
from temporal_plans.activities.agent.host.layout import TaskDir, WorkDir, directory_name
from temporal_plans.activities.agent.host.pods import RequestedPod
from temporal_plans.activities.agent.host.records import LaunchRecord, ReservationRecord
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.sandbox.cgroups import CgroupTree, limits_of
from temporal_plans.activities.agent.sandbox.environment import (
    HostContext,
    base_environment,
    command_of,
    task_environment,
)
from temporal_plans.activities.agent.sandbox.fetch import Fetcher, FetchLimits
from temporal_plans.activities.agent.sandbox.identity import (
    Identity,
    first_closed_parent,
    identity_for,
)
from temporal_plans.activities.agent.sandbox.marks import marked
from temporal_plans.activities.agent.sandbox.rlimits import plan_limits
from temporal_plans.activities.agent.sandbox.sandbox import Sandbox, read_only_note
from temporal_plans.activities.agent.sandbox.secrets import Secrets
from temporal_plans.activities.agent.sandbox.shell import shell_for
from temporal_plans.activities.agent.sandbox.templates import (
    RenderedConfig,
    calls_bootstrap,
    install_bootstrap,
    missing_note,
    python_for,
    render_configs,
)
from temporal_plans.activities.agent.supervisor.supervision import ShimSpec
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.services.backend_support import unsupported_in_pod, unsupported_in_task
from temporal_plans.domain.services.spec import PodSpec, SecretRef, TaskSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.tasks import LaunchInput

_THREADS_LIMIT = 32
"""Threads that fetch and extract. A pool of their own, so that slow servers block no other work."""


class PreparedLaunch(NamedTuple):
    """The supervisor's specification, and notes for the task's first status."""

    spec: ShimSpec
    notes: str


class _SecretValues(NamedTuple):
    env: dict[str, str]
    files: dict[str, bytes]

    @property
    def all(self) -> list[bytes]:
        return [*map(os.fsencode, self.env.values()), *self.files.values()]


class _Files(NamedTuple):
    """The files of a task that the agent writes. ``by_task``: its command renders the configs."""

    secrets: dict[str, bytes]
    configs: tuple[RenderedConfig, ...]
    by_task: bool


class Preparation:
    """Prepares tasks by the settings of one agent."""

    def __init__(
        self,
        settings: AgentSettings,
        work_dir: WorkDir,
        secrets: Secrets,
        cgroups: CgroupTree | None,
        can_raise: bool,
    ) -> None:
        self._settings = settings
        self._work_dir = work_dir
        self._secrets = secrets
        self._cgroups = cgroups
        self._can_raise_rlimits = can_raise
        self._threads = ThreadPoolExecutor(_THREADS_LIMIT, thread_name_prefix="prepare")

    async def prepare(
        self,
        order: LaunchInput,
        launch: TaskLaunch,
        requested: RequestedPod,
        directory: TaskDir,
        progress: Callable[[str], None],
    ) -> PreparedLaunch:
        """Do everything except the start of one task of the order's pod.

        A repetition after a crash finds the sandbox complete or creates it again. Raises
        TaskRefused, and OSError from a full disk and the like. On cancellation it returns once its
        threads have ended.
        """
        pod, task = requested.spec, task_of(requested.spec, launch.task)
        identity, user_note = identity_for(
            requested.user, field=requested.user_field, allow_root=self._settings.allow_root_tasks
        )
        limits = plan_limits(
            pod.rlimits, policy=self._settings.rlimits, can_raise=self._can_raise_rlimits
        )
        volumes = self._volumes(order, pod, task)
        secrets = await self._resolve_secrets(pod)
        try:
            env = self._environment(order, pod, task, directory, identity, secrets)
            cmd = command_of(task, env, paused=launch.paused)
            configs = render_configs(task.configs, env)
            by_task = calls_bootstrap(cmd)
            if not directory.prepared.exists():
                sandbox = Sandbox(directory.sandbox, volumes, identity)
                files = _Files(secrets.files, configs, by_task)
                await self._fill_sandbox(sandbox, pod, identity, files, progress)
                directory.prepared.touch(mode=0o600)
        except TaskRefused as problem:
            raise problem.redacted(Redactor(secrets.all).text) from None
        spec = ShimSpec(
            task_id=launch.task_id,
            cmd=cmd,
            env=env,
            sandbox=str(directory.sandbox),
            launch_log=str(self._work_dir.launches),
            grace=float(task.kill_grace_period),
            identity=_switched(identity, directory.sandbox),
            rlimits=limits.limits,
            cgroup=self._cgroup(launch.task_id, pod, task),
            hidden=tuple(os.fsdecode(value) for value in secrets.all),
            record=directory.task,
            shell=shell_for(
                pod.shell,
                self._settings.shell,
                field="scheduler.shell" if pod.shell else "the agent's --shell",
            ),
        )
        notes = (
            "paused" if launch.paused else "",
            user_note,
            _path_note(directory.sandbox, identity),
            limits.note,
            read_only_note(pod.host_volumes),
            "" if by_task else missing_note(configs),
        )
        return PreparedLaunch(spec, "; ".join(note for note in notes if note))

    def _volumes(self, order: LaunchInput, pod: PodSpec, task: TaskSpec) -> dict[str, Path]:
        """Return the task's volumes by path, after recording all volumes of the reservation."""
        reserved = [
            resource for resource in order.reservation.resources if resource.kind == "volume"
        ]
        record = self._work_dir.reservation(order.reservation.id)
        if record.destroyed is not None:
            raise TaskRefused(
                Reason(
                    field="reservation",
                    problem=f"{record.id} was released at {record.destroyed}",
                    fix=f"give it others: `temporal plan pod replace {order.pod}-{order.index}`",
                )
            )
        if reserved:
            held = self.volume_paths(order)
            now = ReservationRecord(id=record.id, volumes=tuple(sorted({*record.volumes, *held})))
            if now != record:
                self._work_dir.save_reservation(now)
        places = {(volume.set, volume.name): self._volume_path(volume) for volume in reserved}
        own = pod.resource_set(task.resource_set)
        wanted = [("", volume.path) for volume in pod.volumes]
        wanted += [(own.id, volume.path) for volume in own.volumes]
        for slot in wanted:
            if slot not in places:
                raise TaskRefused(
                    Reason(field=f"volumes.{slot[1]}", problem=f"not in reservation {record.id}")
                )
        return {path: places[set_id, path] for set_id, path in wanted}

    def volume_paths(self, order: LaunchInput) -> tuple[str, ...]:
        """Return the directories of all volumes of the order's reservation."""
        resources = order.reservation.resources
        return tuple(str(self._volume_path(one)) for one in resources if one.kind == "volume")

    def _volume_path(self, resource: ReservedResource) -> Path:
        if resource.source:
            return Path(resource.source) / directory_name(resource.id)
        return self._work_dir.volume(resource.id)

    async def _resolve_secrets(self, pod: PodSpec) -> _SecretValues:
        env: dict[str, str] = {}
        files: dict[str, bytes] = {}
        for secret in pod.secrets:
            field = f"pods.{pod.type}.secrets.{secret.name}"
            value = await self._secrets.resolve(secret.secret, field=field)
            if secret.env_key:
                if b"\0" in value:
                    raise TaskRefused(
                        Reason(
                            field=f"{field}.env-key",
                            problem="the value contains a zero byte",
                            fix="use a file",
                        )
                    )
                env[secret.env_key] = os.fsdecode(value)
            if (path := _file_of(secret)) is not None:
                files[path] = value
        return _SecretValues(env, files)

    def _environment(
        self,
        order: LaunchInput,
        pod: PodSpec,
        task: TaskSpec,
        directory: TaskDir,
        identity: Identity | None,
        secrets: _SecretValues,
    ) -> dict[str, str]:
        sandbox = str(directory.sandbox)
        user = None if identity is None else identity.name
        host = HostContext(
            sandbox=sandbox,
            address=self._settings.address or machine_address(),
            dns_domain=self._settings.dns_domain,
            api_hostname=self._settings.api_hostname,
            api_port=self._settings.api_port,
            base=base_environment(self._settings.task_path, sandbox, user),
        )
        try:
            env = task_environment(
                service=order.service,
                pod=pod,
                index=order.index,
                task=task,
                reservation=order.reservation,
                parameters=order.parameters,
                secrets=secrets.env,
                host=host,
            )
        except KeyError as problem:
            raise TaskRefused(
                Reason(
                    field=f"ports.{problem}", problem=f"not in reservation {order.reservation.id}"
                )
            ) from None
        for key, value in env.items():
            if not key or "=" in key or "\0" in key + value:
                raise TaskRefused(
                    Reason(
                        field=f"env.{key!r}",
                        problem="not a valid variable name, or its value has a zero byte",
                    )
                )
        return env

    async def _fill_sandbox(
        self,
        sandbox: Sandbox,
        pod: PodSpec,
        identity: Identity | None,
        files: _Files,
        progress: Callable[[str], None],
    ) -> None:
        limits = FetchLimits(
            timeout=self._settings.fetch_timeout.total_seconds(),
            size=self._settings.fetch_size_limit * 1024 * 1024,
            members=self._settings.archive_members_limit,
        )
        fetcher = Fetcher(limits, progress, identity)

        def fill() -> None:
            sandbox.create()
            for uri in pod.uris:
                fetcher.fetch(uri, sandbox.path)
            sandbox.link_volumes()
            sandbox.link_host_volumes(pod.host_volumes)
            for path, value in files.secrets.items():
                sandbox.write_secret(path, value, f"pods.{pod.type}.secrets")
            own = install_bootstrap(sandbox.path, python_for(identity))
            sandbox.write_configs(files.configs, templates_only=own and files.by_task)
            sandbox.set_owner()

        filling = asyncio.get_running_loop().run_in_executor(self._threads, fill)
        await finish_despite_cancellation(filling, fetcher.stop)

    def _cgroup(self, task_id: str, pod: PodSpec, task: TaskSpec) -> str | None:
        if self._cgroups is None:
            return None
        limits = limits_of(pod.resource_set(task.resource_set))
        return str(self._cgroups.create(directory_name(task_id), limits))


def _switched(identity: Identity | None, sandbox: Path) -> Identity | None:
    """Return the user that the task's process changes to, if it is another than the agent's."""
    if identity is None or identity.uid == os.geteuid():
        return None
    return marked(identity, sandbox)


def task_of(pod: PodSpec, name: str) -> TaskSpec:
    """Return the task of that name. Raises TaskRefused if it is missing or not supported here."""
    try:
        task = pod.task(name)
        pod.resource_set(task.resource_set)
    except KeyError as problem:
        raise TaskRefused(
            Reason(field=f"pods.{pod.type}", problem=f"no task or resource set {problem}")
        ) from None
    if "\0" in task.cmd:
        raise TaskRefused(
            Reason(
                field=f"pods.{pod.type}.tasks.{name}.cmd",
                problem="contains a zero byte",
                fix="remove it",
            )
        )
    if reasons := (*unsupported_in_pod(pod), *unsupported_in_task(pod, task)):
        raise TaskRefused(*reasons)
    return task


def task_record(
    order: LaunchInput, launch: TaskLaunch, requested: RequestedPod | None
) -> LaunchRecord:
    """Return the record of a launch order; ``requested`` is None when the pod is not known."""
    resources = order.reservation.resources
    common = {
        "task_id": launch.task_id,
        "name": task_instance_name(order.pod, order.index, launch.task),
        "reservation": order.reservation.id,
        "report_to": order.report_to,
        "paused": launch.paused,
        "created": datetime.now(UTC),
    }
    tasks = requested.spec.tasks if requested else ()
    task = next((task for task in tasks if task.name == launch.task), None)
    if requested is None or task is None:
        return LaunchRecord.model_validate(common)
    return LaunchRecord.model_validate(
        common
        | {
            "ports": [
                int(one.value)
                for one in resources
                if one.kind == "port" and one.set == task.resource_set
            ],
            "grace": float(task.kill_grace_period),
            "shell": requested.spec.shell,
            "health_check": None if launch.paused else task.health_check,
            "readiness_check": None if launch.paused else task.readiness_check,
            "secret_env": [secret.env_key for secret in requested.spec.secrets if secret.env_key],
            "secret_files": [
                path for secret in requested.spec.secrets if (path := _file_of(secret)) is not None
            ],
        }
    )


def _file_of(secret: SecretRef) -> str | None:
    """Return the path of a secret's file in the sandbox, if it has one."""
    return secret.file or (None if secret.env_key else secret.secret)


def _path_note(sandbox: Path, identity: Identity | None) -> str:
    closed = first_closed_parent(sandbox, identity) if identity else None
    if closed is None or identity is None:
        return ""
    return (
        f"{identity.name} can't use absolute paths of the sandbox: {closed} is not searchable by"
        " that user"
    )
