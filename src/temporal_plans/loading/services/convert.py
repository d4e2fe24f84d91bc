"""Converts a service file into the values of the domain.

Short forms are expanded: a task's own resources become a set, a single volume becomes a list, and
the default of a VIP's prefix is the port's name. ``loading.services.rules`` has checked the file.
"""

from collections.abc import Iterator, Mapping

from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    Discovery,
    ExternalVolume,
    HealthCheck,
    HostVolume,
    NetworkSpec,
    PhaseYaml,
    PlanYaml,
    PodSpec,
    PortSpec,
    ReadinessCheck,
    ResourceLimits,
    ResourceSet,
    RLimit,
    SecretRef,
    ServiceSpec,
    TaskSpec,
    TransportEncryption,
    VipSpec,
    VolumeSpec,
    own_set,
)
from temporal_plans.domain.values.ports import PortRange
from temporal_plans.loading.services.file import ServiceFile
from temporal_plans.loading.services.rules import secret_file
from temporal_plans.loading.services.sections.plans import PhasePlanFile, PlanSectionFile
from temporal_plans.loading.services.sections.pods import PodFile, RLimitFile
from temporal_plans.loading.services.sections.resources import (
    PortFile,
    ResourcesFile,
    VolumeFile,
)
from temporal_plans.loading.services.sections.tasks import ConfigFile, TaskFile
from temporal_plans.loading.services.taskcfg import task_environment

UNLIMITED = -1


def to_service(
    file: ServiceFile, env: Mapping[str, str], templates: Mapping[str, str]
) -> ServiceSpec:
    """Return the service that a valid file describes.

    ``env`` has the values with which the file was rendered; its ``TASKCFG_*`` are passed to the
    tasks. ``templates`` has the text of every config template, by file name.
    """
    scheduler = file.scheduler
    return ServiceSpec(
        name=file.name,
        web_url=file.web_url,
        principal=scheduler.principal or f"{file.name}-principal",
        zookeeper=scheduler.zookeeper,
        user=scheduler.user,
        pods=tuple(
            _pod(name, pod, task_environment(name, env), templates).but(shell=scheduler.shell)
            for name, pod in file.pods.items()
        ),
        plans={name: _plan(plan) for name, plan in file.plans.items()} if file.plans else None,
    )


def _pod(
    name: str, pod: PodFile, overrides: Mapping[str, str], templates: Mapping[str, str]
) -> PodSpec:
    return PodSpec(
        type=name,
        count=pod.count,
        tasks=tuple(
            _task(task_name, task, overrides, templates) for task_name, task in pod.tasks.items()
        ),
        resource_sets=tuple(_resource_sets(pod)),
        volumes=_volumes(pod.all_volumes()),
        placement=pod.placement,
        user=pod.user,
        image=pod.image,
        networks=tuple(
            NetworkSpec(
                name=network_name,
                host_ports=network.host_ports,
                container_ports=network.container_ports,
                labels=network.labels,
            )
            for network_name, network in pod.networks.items()
        ),
        rlimits=tuple(_rlimit(key, limit) for key, limit in pod.rlimits.items()),
        uris=pod.uris,
        pre_reserved_role=pod.pre_reserved_role,
        secrets=tuple(
            SecretRef(
                name=key, secret=secret.secret, env_key=secret.env_key, file=secret_file(secret)
            )
            for key, secret in pod.secrets.items()
        ),
        share_pid_namespace=pod.share_pid_namespace,
        allow_decommission=pod.allow_decommission,
        host_volumes=tuple(
            HostVolume(
                name=key,
                host_path=volume.host_path,
                container_path=volume.container_path,
                mode=volume.mode,
            )
            for key, volume in pod.host_volumes.items()
        ),
        external_volumes=tuple(
            ExternalVolume(
                name=key,
                type=volume.type,
                volume_name=volume.volume_name,
                volume_mode=volume.volume_mode,
                driver_name=volume.driver_name,
                driver_options=volume.driver_options,
                container_path=volume.container_path,
            )
            for key, volume in pod.external_volumes.items()
        ),
        seccomp_unconfined=pod.seccomp_unconfined,
        seccomp_profile_name=pod.seccomp_profile_name,
        ipc_mode=pod.ipc_mode,
        shm_size=pod.shm_size,
    )


def _rlimit(name: str, limit: RLimitFile) -> RLimit:
    if limit.soft == UNLIMITED:
        return RLimit(name=name)
    return RLimit(name=name, soft=limit.soft, hard=limit.hard)


def _resource_sets(pod: PodFile) -> Iterator[ResourceSet]:
    for name, resources in pod.resource_sets.items():
        yield _resource_set(name, resources)
    for name, task in pod.tasks.items():
        if task.resource_set is None:
            yield _resource_set(own_set(name), task)


def _resource_set(set_id: str, resources: ResourcesFile) -> ResourceSet:
    limits = resources.resource_limits
    return ResourceSet(
        id=set_id,
        cpus=resources.cpus or 0.0,
        gpus=resources.gpus or 0.0,
        memory=resources.memory or 0,
        ports=tuple(_port(name, port) for name, port in (resources.ports or {}).items()),
        volumes=_volumes(resources.all_volumes()),
        limits=ResourceLimits(cpus=limits.cpus, memory=limits.memory) if limits else None,
    )


def _volumes(volumes: Mapping[str, VolumeFile]) -> tuple[VolumeSpec, ...]:
    return tuple(
        VolumeSpec(path=v.path, type=v.type, size=v.size, profiles=v.profiles)
        for v in volumes.values()
    )


def _port(name: str, port: PortFile) -> PortSpec:
    return PortSpec(
        name=name,
        port=port.port,
        env_key=port.env_key,
        advertise=port.advertise,
        vip=VipSpec(port=port.vip.port, prefix=port.vip.prefix or name) if port.vip else None,
        ranges=tuple(PortRange(begin=span.begin, end=span.end) for span in port.ranges),
    )


def _task(
    name: str, task: TaskFile, overrides: Mapping[str, str], templates: Mapping[str, str]
) -> TaskSpec:
    health, ready, discovery = task.health_check, task.readiness_check, task.discovery
    return TaskSpec(
        name=name,
        goal=task.goal,
        cmd=task.cmd,
        resource_set=task.resource_set or own_set(name),
        essential=task.essential,
        env={**task.env, **overrides},
        labels=task.labels,
        configs=tuple(_config(key, config, templates) for key, config in task.configs.items()),
        health_check=HealthCheck(
            cmd=health.cmd,
            interval=health.interval,
            grace_period=health.grace_period,
            max_consecutive_failures=health.max_consecutive_failures,
            delay=health.delay,
            timeout=health.timeout,
        )
        if health
        else None,
        readiness_check=ReadinessCheck(
            cmd=ready.cmd, interval=ready.interval, delay=ready.delay, timeout=ready.timeout
        )
        if ready
        else None,
        kill_grace_period=task.kill_grace_period,
        discovery=Discovery(prefix=discovery.prefix, visibility=discovery.visibility)
        if discovery
        else None,
        transport_encryption=tuple(
            TransportEncryption(name=entry.name, type=entry.type)
            for entry in task.transport_encryption
        ),
        ipc_mode=task.ipc_mode,
        shm_size=task.shm_size,
    )


def _config(name: str, config: ConfigFile, templates: Mapping[str, str]) -> ConfigTemplate:
    return ConfigTemplate(name=name, template=templates.get(config.template, ""), dest=config.dest)


def _plan(plan: PlanSectionFile) -> PlanYaml:
    return PlanYaml(
        strategy=_strategy(plan.strategy),
        phases={name: _phase(phase) for name, phase in plan.phases.items()},
        parameters=[parameter.model_dump(mode="json") for parameter in plan.parameters],
    )


def _phase(phase: PhasePlanFile) -> PhaseYaml:
    return PhaseYaml(pod=phase.pod, strategy=_strategy(phase.strategy), steps=phase.steps)


def _strategy(strategy: StrategySpec) -> object:
    """Return a strategy without settings as its name, so that equal plans are equal as
    documents."""
    settings = strategy.model_dump(mode="json")
    return strategy.name if settings.keys() <= {"name"} else settings
