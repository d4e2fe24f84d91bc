"""The environment of a task, built in the order of reference 9.10. Pure."""

import re
from collections.abc import Mapping

from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.model import Value
from temporal_plans.domain.service import PodSpec, TaskSpec, task_instance_name

TEMPLATE_FOLDER = "config-templates"
"""Where in the sandbox the templates of ``configs`` are put, as ``CONFIG_TEMPLATE_…`` says."""


PAUSE_COMMAND = "PAUSE_OVERRIDE_CMD"
"""The variable of a task's environment that says what runs while it is paused."""

DEFAULT_PAUSE_COMMAND = (
    'echo "This task is paused: its own command does not run until it is resumed."; '
    "while :; do sleep 86400; done"
)


class Place(Value):
    """What a task's environment takes from where it runs.

    ``base`` is the lowest layer (PATH, HOME, USER): whatever the task says itself wins.
    """

    sandbox: str
    dns_domain: str
    api_hostname: str
    api_port: int
    base: dict[str, str] = {}


def task_environment(
    *,
    service: str,
    pod: PodSpec,
    index: int,
    task: TaskSpec,
    reservation: Reservation,
    parameters: Mapping[str, str],
    secrets: Mapping[str, str],
    place: Place,
) -> dict[str, str]:
    """The whole environment of one task.

    ``secrets`` are values by env-key. Later entries win: what the task declares (TASKCFG values
    are among it since the file was loaded), built-ins, config templates, plan parameters, secrets,
    ports, region and zone. KeyError when the reservation lacks a port of the task's resource set.
    """
    return {
        **place.base,
        **task.env,
        **_built_in(service, pod, index, task, place),
        **_config_templates(task),
        **parameters,
        **secrets,
        **_ports(pod, task, reservation),
        **_location(reservation),
    }


def command_of(task: TaskSpec, env: Mapping[str, str], *, paused: bool) -> str:
    """What a task runs; ``paused``: the pause command in its place (reference 6.8)."""
    return (env.get(PAUSE_COMMAND) or DEFAULT_PAUSE_COMMAND) if paused else task.cmd


def _built_in(
    service: str, pod: PodSpec, index: int, task: TaskSpec, place: Place
) -> dict[str, str]:
    name = task_instance_name(pod.type, index, task.name)
    host = service.replace("/", "")  # /folder/name is one label of a host name
    return {
        "MESOS_SANDBOX": place.sandbox,
        "POD_INSTANCE_INDEX": str(index),
        "FRAMEWORK_NAME": service,
        "FRAMEWORK_HOST": f"{host}.{place.dns_domain}",
        "FRAMEWORK_VIP_HOST": f"{host}.vip.{place.dns_domain}",
        "SCHEDULER_API_HOSTNAME": place.api_hostname,
        "SCHEDULER_API_PORT": str(place.api_port),
        "TASK_NAME": name,
        name: "true",
        "PLACEMENT_REFERENCED_REGION": _boolean("@region" in pod.placement),
        "PLACEMENT_REFERENCED_ZONE": _boolean("@zone" in pod.placement),
    }


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


def variable_name(text: str) -> str:
    """``server.xml`` as part of a variable's name: ``SERVER_XML``."""
    return re.sub(r"[^A-Z0-9]", "_", text.upper())


def _boolean(value: bool) -> str:
    return "true" if value else "false"
