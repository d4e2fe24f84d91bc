"""The documents of ``temporal plan demo --fleet``, in whose plans every command writes down
what it does."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from temporal_plans.cli.actions.fleet_applying import declaration, read_files
from temporal_plans.cli.actions.fleet_publishing import publication
from temporal_plans.loading.fleets.documents import EnvironmentDocument
from temporal_plans.loading.fleets.files import FleetFile
from temporal_plans.messages.fleets.environments import EnvironmentApply
from temporal_plans.messages.fleets.products import Publish

ENVIRONMENTS = ("north", "south")
GOOD, BROKEN = "install.yml", "broken/install.yml"

_SOAK = "soak: 1s"

_WRITTEN = (
    'note() {{ echo "$1 $INTENT $ENVIRONMENT/$ENTITY {step} ${{FROM_VERSION:-none}} $VERSION'
    ' $MESOS_SANDBOX" >> {journal}; }}; note begun; sleep 0.3; ({command}) && note done'
)
"""The shell's ``echo`` of a line is one write."""


class Documents:
    """The files of the demo as this fleet has them, below a directory."""

    def __init__(self, directory: Path, journal: Path) -> None:
        self._directory = directory
        for found in _demo(Path(str(files("temporal_plans.cli").joinpath("demo_fleet")))):
            name, text = found
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_writing(text, journal) if path.name == "install.yml" else text)

    def products(self) -> list[FleetFile]:
        """The products and their pipelines, with soaks that are over soon."""
        path = self._directory / "products.yml"
        text, count = re.subn(r"soak: \d+s", _SOAK, path.read_text())
        assert count == 2, "the demo has two pipelines with soaks"
        path.write_text(text)
        return read_files([path])

    def environment(self, name: str) -> EnvironmentApply:
        (file,) = read_files([self._directory / f"{name}.yml"])
        assert isinstance(file.value, EnvironmentDocument)
        return EnvironmentApply(environment=declaration(file.value), reason="a story")

    def release(self, product: str, version: str, *channels: str, file: str = GOOD) -> Publish:
        manifest = self._directory / f"{product}-{version}.yml"
        return publication(
            version,
            [str(self._directory / file)],
            manifest if manifest.exists() else None,
            channels,
            "",
            "a story",
        ).publish


def _demo(folder: Path) -> list[tuple[str, str]]:
    found = [path for path in folder.rglob("*.yml") if path.is_file()]
    assert found, f"{folder} has no documents"
    return [(str(path.relative_to(folder)), path.read_text()) for path in found]


def _writing(text: str, journal: Path) -> str:
    """A plan file whose commands write before and after they do their work."""
    plan: dict[str, Any] = yaml.safe_load(text)
    for phase in plan["phases"].values():
        for name, work in phase["steps"].items():
            if "command" in work:
                given = work["command"]
                written = _WRITTEN.format(step=name, journal=journal, command=given["cmd"])
                phase["steps"][name] = {"command": {**given, "cmd": written}}
    return yaml.safe_dump(plan, sort_keys=False)
