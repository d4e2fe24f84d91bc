"""The environment of a task (behaviour 9.10)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from temporal_plans.activities.agent.sandbox.environment import (
    DEFAULT_PAUSE_COMMAND,
    PAUSE_COMMAND,
    HostContext,
    command_of,
    task_environment,
)
from temporal_plans.activities.mechanics.variable_names import variable_name
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.services.spec import (
    ConfigTemplate,
    PodSpec,
    PortSpec,
    ResourceSet,
    TaskSpec,
)
from temporal_plans.domain.tasks.goal import Goal

HOST = HostContext(
    sandbox="/sandbox",
    address="192.0.2.7",
    dns_domain="plans.internal",
    api_hostname="api",
    api_port=80,
    base={"PATH": "/bin", "HOME": "/sandbox"},
)


def environment(
    *,
    service: str = "hello-world",
    env: dict[str, str] | None = None,
    parameters: dict[str, str] | None = None,
    secrets: dict[str, str] | None = None,
    ports: tuple[PortSpec, ...] = (),
    placement: str = "",
    region: str | None = None,
    host: HostContext = HOST,
    **task: Any,
) -> dict[str, str]:
    server = TaskSpec(
        name="server", goal=Goal.RUNNING, cmd="true", resource_set="main", env=env or {}, **task
    )
    pod = PodSpec(
        type="hello",
        count=3,
        tasks=(server,),
        resource_sets=(ResourceSet(id="main", ports=ports),),
        placement=placement,
    )
    held = tuple(
        ReservedResource(id=port.name, set="main", kind="port", value=8000 + number, name=port.name)
        for number, port in enumerate(ports)
    )
    return task_environment(
        service=service,
        pod=pod,
        index=2,
        task=server,
        reservation=Reservation(
            id="r",
            owner="service/hello-world",
            pod="hello",
            index=2,
            agent="a",
            queue="q",
            hostname="h",
            region=region,
            resources=held,
            created=datetime(2026, 1, 1, tzinfo=UTC),
        ),
        parameters=parameters or {},
        secrets=secrets or {},
        host=host,
    )


def test_a_plain_task_has_the_built_ins_and_nothing_else() -> None:
    assert environment() == {
        "PATH": "/bin",
        "HOME": "/sandbox",
        "MESOS_SANDBOX": "/sandbox",
        "MESOS_CONTAINER_IP": "192.0.2.7",
        "POD_INSTANCE_INDEX": "2",
        "FRAMEWORK_NAME": "hello-world",
        "FRAMEWORK_HOST": "hello-world.plans.internal",
        "FRAMEWORK_VIP_HOST": "hello-world.vip.plans.internal",
        "SCHEDULER_API_HOSTNAME": "api",
        "SCHEDULER_API_PORT": "80",
        "TASK_NAME": "hello-2-server",
        "hello-2-server": "true",
        "PLACEMENT_REFERENCED_REGION": "false",
        "PLACEMENT_REFERENCED_ZONE": "false",
    }


def test_names_that_do_not_exist_are_not_set() -> None:
    """A task would wait for such a name."""
    env = environment(host=HostContext(sandbox="/sandbox", address="192.0.2.7"))
    assert not {name for name in env if "HOST" in name or name.startswith("SCHEDULER_API")}


X_PORT = (PortSpec(name="x", env_key="X"),)


@pytest.mark.parametrize(
    ("layers", "key", "value"),
    [
        pytest.param({"env": {"PATH": "/opt"}}, "PATH", "/opt", id="task over base"),
        pytest.param({"env": {"TASK_NAME": "x"}}, "TASK_NAME", "hello-2-server", id="built-in"),
        pytest.param({"env": {"X": "e"}, "parameters": {"X": "p"}}, "X", "p", id="parameter"),
        pytest.param(
            {"parameters": {"TASK_NAME": "p"}}, "TASK_NAME", "p", id="parameter over built-in"
        ),
        pytest.param({"parameters": {"X": "p"}, "secrets": {"X": "s"}}, "X", "s", id="secret"),
        pytest.param({"secrets": {"X": "s"}, "ports": X_PORT}, "X", "8000", id="port over secret"),
        pytest.param(
            {"parameters": {"REGION": "p"}, "region": "r1"}, "REGION", "r1", id="region over all"
        ),
        pytest.param({"env": {"REGION": "e"}}, "REGION", "e", id="no region of the agent"),
    ],
)
def test_later_layers_win(layers: dict[str, Any], key: str, value: str) -> None:
    assert environment(**layers)[key] == value


def test_ports_without_a_key_stay_out() -> None:
    ports = (PortSpec(name="a"), PortSpec(name="b", env_key="B"))
    added = environment(ports=ports).items() - environment().items()
    assert added == {("B", "8001")}


@pytest.mark.parametrize(
    ("placement", "region", "zone"),
    [
        pytest.param('[["@region", "GROUP_BY"]]', "true", "false", id="region"),
        pytest.param('[["@zone", "GROUP_BY", "3"]]', "false", "true", id="zone"),
        pytest.param('[["hostname", "UNIQUE"]]', "false", "false", id="neither"),
    ],
)
def test_placement_references_are_told(placement: str, region: str, zone: str) -> None:
    env = environment(placement=placement)
    assert env["PLACEMENT_REFERENCED_REGION"] == region
    assert env["PLACEMENT_REFERENCED_ZONE"] == zone


def test_config_templates_are_named() -> None:
    configs = (ConfigTemplate(name="server.xml-2", template="x", dest="conf/server.xml"),)
    env = environment(configs=configs)
    assert env["CONFIG_TEMPLATE_SERVER_XML_2"] == "config-templates/server.xml-2,conf/server.xml"


def test_a_service_in_a_folder_keeps_its_raw_name() -> None:
    env = environment(service="/data/hello")
    assert (env["FRAMEWORK_NAME"], env["FRAMEWORK_HOST"]) == (
        "/data/hello",
        "datahello.plans.internal",
    )


@pytest.mark.parametrize(("text", "name"), [("a-b.c/d", "A_B_C_D"), ("ÄB1", "_B1"), ("", "")])
def test_variable_names(text: str, name: str) -> None:
    assert variable_name(text) == name


@pytest.mark.parametrize(
    ("env", "paused", "runs"),
    [
        pytest.param({}, False, "true", id="not paused"),
        pytest.param({PAUSE_COMMAND: "nap"}, False, "true", id="not paused, has one"),
        pytest.param({}, True, DEFAULT_PAUSE_COMMAND, id="paused"),
        pytest.param({PAUSE_COMMAND: ""}, True, DEFAULT_PAUSE_COMMAND, id="an empty one"),
        pytest.param({PAUSE_COMMAND: "nap"}, True, "nap", id="one of its own"),
    ],
)
def test_the_command_of_a_task(env: dict[str, str], paused: bool, runs: str) -> None:
    task = TaskSpec(name="server", goal=Goal.RUNNING, cmd="true", resource_set="main")
    assert command_of(task, env, paused=paused) == runs
