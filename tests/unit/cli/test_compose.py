"""docker-compose.yml says what our command and its other parts understand."""

import re
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from repository import ROOT
from temporal_plans.cli.main import app

TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
FOREIGN = sorted(set(SERVICES) - set(OURS))
EXAMPLE = dict(
    line.split("=", 1)
    for line in (ROOT / ".env.example").read_text().splitlines()
    if line and not line.startswith("#")
)
VARIABLE = re.compile(r"(?<!\$)\$\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*))?[^}]*\}")


def _with_defaults(text: str) -> str:
    return VARIABLE.sub(lambda match: match["default"] or "", text)


def test_what_runs() -> None:
    assert OURS == ["agent-1", "agent-2", "plan", "worker"]
    assert FOREIGN == ["namespace", "postgres", "schema", "temporal", "ui"]


@pytest.mark.parametrize("name", sorted(set(OURS) - {"plan"}))
def test_our_services_run_commands_that_there_are(name: str) -> None:
    verb, *arguments = SERVICES[name]["command"]
    cli = get_command(app)
    assert isinstance(cli, TyperGroup)
    command = cli.commands[verb]
    # Parsed and not run: unknown options and missing ones are refused here.
    command.make_context(verb, list(arguments))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_images_are_pinned(name: str) -> None:
    image = _with_defaults(SERVICES[name]["image"])
    assert re.fullmatch(r"[a-z/-]+:\d+(\.\d+)*", image), image


def test_server_and_schema_are_of_one_version() -> None:
    versions = {
        _with_defaults(SERVICES[name]["image"]).rpartition(":")[2]
        for name in ("temporal", "schema", "namespace")
    }
    assert versions == {EXAMPLE["TEMPORAL_VERSION"]}


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("schema", {"postgres": "service_healthy"}),
        ("temporal", {"schema": "service_completed_successfully"}),
        ("namespace", {"temporal": "service_healthy"}),
        ("ui", {"temporal": "service_healthy"}),
        *((name, {"namespace": "service_completed_successfully"}) for name in OURS),
    ],
)
def test_nothing_starts_before_what_it_needs(name: str, needs: dict[str, str]) -> None:
    conditions = {on: how["condition"] for on, how in SERVICES[name]["depends_on"].items()}
    assert conditions == needs
    for needed, condition in needs.items():
        if condition == "service_healthy":
            assert "healthcheck" in SERVICES[needed]


def test_everything_comes_back_by_itself() -> None:
    policies = {name: service["restart"] for name, service in SERVICES.items()}
    once = {name: policies.pop(name) for name in ("schema", "namespace", "plan")}
    assert set(policies.values()) == {"unless-stopped"}
    assert once == {"schema": "on-failure:5", "namespace": "on-failure:5", "plan": "no"}


def test_agents_share_neither_name_nor_disk() -> None:
    agents = [SERVICES[name] for name in OURS if name.startswith("agent-")]
    assert len({agent["hostname"] for agent in agents}) == len(agents)
    assert len({tuple(agent["volumes"]) for agent in agents}) == len(agents)
    assert len({tuple(agent["command"]) for agent in agents}) == len(agents)
    for agent in agents:
        directory = agent["command"][agent["command"].index("--work-dir") + 1]
        assert [volume.split(":")[1] for volume in agent["volumes"]] == [directory]


def test_only_agents_run_as_root() -> None:
    assert [name for name in OURS if SERVICES[name].get("user") == "root"] == ["agent-1", "agent-2"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (.+)$", dockerfile, re.MULTILINE) == ["plans"]


def test_the_example_environment_is_complete_and_agrees() -> None:
    used = {match["name"]: match["default"] for match in VARIABLE.finditer(TEXT)}
    assert set(EXAMPLE) == set(used)
    agreed = {name: value for name, value in used.items() if value is not None}
    assert agreed == {name: value for name, value in EXAMPLE.items() if name in agreed}


def test_nothing_is_offered_to_the_network_unasked() -> None:
    ports = [
        _with_defaults(port) for service in SERVICES.values() for port in service.get("ports", ())
    ]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_volumes_are_declared() -> None:
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", ())
    }
    assert mounted - {"."} == set(COMPOSE["volumes"])


def test_commands_about_the_namespace_name_it() -> None:
    """Of the `temporal` CLI these ignore TEMPORAL_NAMESPACE, and take the namespace `default`."""
    (script,) = SERVICES["namespace"]["command"]
    commands = re.findall(r"temporal operator namespace \w+ (.*)", script)
    assert len(commands) == 2
    assert all('--namespace "$$TEMPORAL_NAMESPACE"' in command for command in commands)
