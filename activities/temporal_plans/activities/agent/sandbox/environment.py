"""The environment of a task, built in the order of behaviour 9.10. Pure."""

from collections.abc import Mapping

from temporal_plans.activities.mechanics.variable_names import variable_name
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.spec import PodSpec, TaskSpec
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.model import Value

TEMPLATE_FOLDER = "config-templates"
"""The directory in the sandbox for the templates of ``configs``, named by ``CONFIG_TEMPLATE_…``."""

PAUSE_COMMAND = "PAUSE_OVERRIDE_CMD"
"""The variable of a task's environment that holds the command for its pause."""

DEFAULT_PAUSE_COMMAND = (
    'echo "This task is paused: its own command does not run until it is resumed."; '
    "while :; do sleep 86400; done"
)


class HostContext(Value):
    """The values of a task's environment that depend on its agent.

    Without ``dns_domain`` and ``api_hostname`` the variables with such names are not set: a name
    that does not exist makes a task wait for it.

    ``base`` is the lowest layer (``base_environment``): variables of the task override it.
    """

    sandbox: str
    address: str
    dns_domain: str | None = None
    api_hostname: str | None = None
    api_port: int = 8080
    base: dict[str, str] = {}


def base_environment(path: str, sandbox: str, user: str | None) -> dict[str, str]:
    """Return the variables that every process needs. ``user`` is the user that the agent switches
    to, None when the task runs as the agent's user."""
    names = {} if user is None else {"USER": user, "LOGNAME": user}
    return {"PATH": path, "HOME": sandbox, **names}


def task_environment(
    *,
    service: str,
    pod: PodSpec,
    index: int,
    task: TaskSpec,
    reservation: Reservation,
    parameters: Mapping[str, str],
    secrets: Mapping[str, str],
    host: HostContext,
) -> dict[str, str]:
    """Return the whole environment of one task.

    ``secrets`` are values by env-key. Later entries override earlier ones: the task's own variables
    (TASKCFG values are merged into them when the file is loaded), built-ins, config templates, plan
    parameters, secrets, ports, region and zone. Raises KeyError when the reservation lacks a port
    of the task's resource set.
    """
    return {
        **host.base,
        **task.env,
        **_built_in(service, pod, index, task, host),
        **_config_templates(task),
        **parameters,
        **secrets,
        **_ports(pod, task, reservation),
        **_location(reservation),
    }


def command_of(task: TaskSpec, env: Mapping[str, str], *, paused: bool) -> str:
    """Return a task's command; if ``paused``, the pause command (behaviour 6.8)."""
    return (env.get(PAUSE_COMMAND) or DEFAULT_PAUSE_COMMAND) if paused else task.cmd


def _built_in(
    service: str, pod: PodSpec, index: int, task: TaskSpec, host: HostContext
) -> dict[str, str]:
    name = task_instance_name(pod.type, index, task.name)
    return {
        "MESOS_SANDBOX": host.sandbox,
        "MESOS_CONTAINER_IP": host.address,
        "POD_INSTANCE_INDEX": str(index),
        "FRAMEWORK_NAME": service,
        **_names_of_hosts(service, host),
        "TASK_NAME": name,
        name: "true",
        "PLACEMENT_REFERENCED_REGION": _boolean("@region" in pod.placement),
        "PLACEMENT_REFERENCED_ZONE": _boolean("@zone" in pod.placement),
    }


def _names_of_hosts(service: str, host: HostContext) -> dict[str, str]:
    names: dict[str, str] = {}
    if host.dns_domain:
        label = service.replace("/", "")  # /folder/name is one label of a host name
        names["FRAMEWORK_HOST"] = f"{label}.{host.dns_domain}"
        names["FRAMEWORK_VIP_HOST"] = f"{label}.vip.{host.dns_domain}"
    if host.api_hostname:
        names["SCHEDULER_API_HOSTNAME"] = host.api_hostname
        names["SCHEDULER_API_PORT"] = str(host.api_port)
    return names


def _config_templates(task: TaskSpec) -> dict[str, str]:
    return {
        f"CONFIG_TEMPLATE_{variable_name(config.name)}": (
            f"{TEMPLATE_FOLDER}/{config.name},{config.dest}"
        )
        for config in task.configs
    }


def _ports(pod: PodSpec, task: TaskSpec, reservation: Reservation) -> dict[str, str]:
    resources = pod.resource_set(task.resource_set)
    return {
        port.env_key: str(reservation.port(resources.id, port.name))
        for port in resources.ports
        if port.env_key
    }


def _location(reservation: Reservation) -> dict[str, str]:
    places = {"REGION": reservation.region, "ZONE": reservation.zone}
    return {key: value for key, value in places.items() if value}


def _boolean(value: bool) -> str:
    return "true" if value else "false"
