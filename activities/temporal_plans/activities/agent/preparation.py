"""From an order to a task that can be started: its sandbox filled, its supervisor's orders made."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from temporal_plans.activities.agent.capabilities import unsupported
from temporal_plans.activities.agent.cgroups import CgroupTree, limits_of
from temporal_plans.activities.agent.environment import Place, command_of, task_environment
from temporal_plans.activities.agent.fetch import Fetcher
from temporal_plans.activities.agent.finishing import finished
from temporal_plans.activities.agent.identity import Identity, closed_above, identity_for
from temporal_plans.activities.agent.layout import TaskDir, WorkDir, directory_name
from temporal_plans.activities.agent.pods import AskedPod
from temporal_plans.activities.agent.records import ReservationRecord, TaskRecord
from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.activities.agent.rlimits import plan_limits
from temporal_plans.activities.agent.sandbox import Sandbox, read_only_note
from temporal_plans.activities.agent.secrets import Secrets
from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.activities.agent.supervision import ShimSpec
from temporal_plans.domain.cluster import ReservedResource
from temporal_plans.domain.service import PodSpec, TaskSpec, task_instance_name
from temporal_plans.messages.cluster import LaunchInput, TaskLaunch

_PREPARING_AT_ONCE = 32
"""Threads that fetch and extract: of their own, so that slow servers hold nothing else up."""


class Prepared(NamedTuple):
    """What to start, and what its first status should say."""

    spec: ShimSpec
    notes: str


class _SecretValues(NamedTuple):
    env: dict[str, str]
    files: dict[str, bytes]


class Preparation:
    """Prepares tasks as one agent's settings say."""

    def __init__(
        self,
        settings: AgentSettings,
        work_dir: WorkDir,
        secrets: Secrets,
        cgroups: CgroupTree | None,
        raisable_rlimits: bool,
    ) -> None:
        self._settings = settings
        self._work_dir = work_dir
        self._secrets = secrets
        self._cgroups = cgroups
        self._raisable = raisable_rlimits
        self._threads = ThreadPoolExecutor(_PREPARING_AT_ONCE, thread_name_prefix="prepare")

    async def prepare(
        self,
        order: LaunchInput,
        launch: TaskLaunch,
        asked: AskedPod,
        directory: TaskDir,
        progress: Callable[[str], None],
    ) -> Prepared:
        """Everything short of starting one task of the order's pod.

        Done again after a crash, it finds the sandbox complete or makes it anew. TaskRefused, or
        OSError from a full disk and the like. Cancelled, it returns when nothing of it runs on.
        """
        pod, task = asked.spec, task_of(asked.spec, launch.task)
        identity, user_note = identity_for(
            asked.user, field=asked.user_field, allow_root=self._settings.allow_root_tasks
        )
        limits = plan_limits(pod.rlimits, policy=self._settings.rlimits, raisable=self._raisable)
        volumes = self._volumes(order, pod, task)
        secrets = await self._resolve_secrets(pod)
        env = self._environment(order, pod, task, directory, identity, secrets)
        if not directory.prepared.exists():
            sandbox = Sandbox(directory.sandbox, volumes)
            await self._fill(sandbox, pod, task, identity, secrets, env, progress)
            directory.prepared.touch()
        spec = ShimSpec(
            task_id=launch.task_id,
            cmd=command_of(task, env, paused=launch.paused),
            env=env,
            sandbox=str(directory.sandbox),
            launch_log=str(self._work_dir.launches),
            grace=float(task.kill_grace_period),
            identity=None if identity is not None and identity.uid == os.geteuid() else identity,
            rlimits=limits.limits,
            cgroup=self._cgroup(launch.task_id, pod, task),
        )
        notes = (
            "paused" if launch.paused else "",
            user_note,
            _path_note(directory.sandbox, identity),
            limits.note,
            read_only_note(pod.host_volumes),
        )
        return Prepared(spec, "; ".join(note for note in notes if note))

    def _volumes(self, order: LaunchInput, pod: PodSpec, task: TaskSpec) -> dict[str, Path]:
        """The task's volumes by path, after writing down which the reservation has at all."""
        reserved = [
            resource for resource in order.reservation.resources if resource.kind == "volume"
        ]
        record = self._work_dir.reservation(order.reservation.id)
        if record.destroyed is not None:
            raise TaskRefused(f"the reservation {record.id} was released at {record.destroyed}")
        if reserved:
            held = {str(self._volume_place(resource)) for resource in reserved}
            now = ReservationRecord(id=record.id, volumes=tuple(sorted({*record.volumes, *held})))
            if now != record:
                self._work_dir.keep_reservation(now)
        places = {(one.set, one.name): self._volume_place(one) for one in reserved}
        own = pod.resource_set(task.resource_set)
        wanted = [("", one.path) for one in pod.volumes]
        wanted += [(own.id, one.path) for one in own.volumes]
        for slot in wanted:
            if slot not in places:
                raise TaskRefused(f"volume {slot[1]!r} is not in reservation {record.id}")
        return {path: places[set_id, path] for set_id, path in wanted}

    def _volume_place(self, resource: ReservedResource) -> Path:
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
                    raise TaskRefused(f"{field}.env-key: the value holds a zero byte; use a file")
                env[secret.env_key] = os.fsdecode(value)
            if secret.file or not secret.env_key:
                files[secret.file or secret.secret] = value
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
        base = {"PATH": os.environ.get("PATH", os.defpath), "HOME": sandbox}
        if identity is not None:
            base |= {"USER": identity.name, "LOGNAME": identity.name}
        place = Place(
            sandbox=sandbox,
            dns_domain=self._settings.dns_domain,
            api_hostname=self._settings.api_hostname,
            api_port=self._settings.api_port,
            base=base,
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
                place=place,
            )
        except KeyError as problem:
            raise TaskRefused(
                f"port {problem} is not in reservation {order.reservation.id}"
            ) from None
        for key, value in env.items():
            if not key or "=" in key or "\0" in key + value:
                raise TaskRefused(f"env: {key!r} can't be a variable's name, or has a zero byte")
        return env

    async def _fill(
        self,
        sandbox: Sandbox,
        pod: PodSpec,
        task: TaskSpec,
        identity: Identity | None,
        secrets: _SecretValues,
        env: dict[str, str],
        progress: Callable[[str], None],
    ) -> None:
        fetcher = Fetcher(self._settings.fetch_timeout.total_seconds(), progress)

        def fill() -> None:
            sandbox.create()
            for uri in pod.uris:
                fetcher.fetch(uri, sandbox.path)
            sandbox.link_volumes(identity)
            sandbox.link_host_volumes(pod.host_volumes)
            for path, value in secrets.files.items():
                sandbox.write_secret(path, value, f"pods.{pod.type}.secrets")
            sandbox.write_configs(task.configs, env)
            sandbox.give_to(identity)

        filling = asyncio.get_running_loop().run_in_executor(self._threads, fill)
        await finished(filling, fetcher.stop)

    def _cgroup(self, task_id: str, pod: PodSpec, task: TaskSpec) -> str | None:
        if self._cgroups is None:
            return None
        limits = limits_of(pod.resource_set(task.resource_set))
        return str(self._cgroups.create(directory_name(task_id), limits))


def task_of(pod: PodSpec, name: str) -> TaskSpec:
    """The task of that name that this agent can run; TaskRefused when there is none."""
    try:
        task = pod.task(name)
        pod.resource_set(task.resource_set)
    except KeyError as problem:
        raise TaskRefused(f"pods.{pod.type}: there is no task or resource set {problem}") from None
    if problems := unsupported(pod, task):
        raise TaskRefused("; ".join(problems))
    return task


def task_record(order: LaunchInput, launch: TaskLaunch, asked: AskedPod | None) -> TaskRecord:
    """What is kept of an order; without a pod, when even that could not be had."""
    common = {
        "task_id": launch.task_id,
        "name": task_instance_name(order.pod, order.index, launch.task),
        "reservation": order.reservation.id,
        "report_to": order.report_to,
        "paused": launch.paused,
        "created": datetime.now(UTC),
    }
    tasks = asked.spec.tasks if asked else ()
    task = next((task for task in tasks if task.name == launch.task), None)
    if asked is None or task is None:
        return TaskRecord.model_validate(common)
    return TaskRecord.model_validate(
        common
        | {
            "grace": float(task.kill_grace_period),
            "health_check": None if launch.paused else task.health_check,
            "readiness_check": None if launch.paused else task.readiness_check,
            "secret_env": [secret.env_key for secret in asked.spec.secrets if secret.env_key],
        }
    )


def _path_note(sandbox: Path, identity: Identity | None) -> str:
    closed = closed_above(sandbox, identity) if identity else None
    if closed is None or identity is None:
        return ""
    return f"{identity.name} can't use absolute paths of the sandbox: {closed} lets nobody pass"
