"""``demo --fleet``: a hub and two spokes, with a Temporal server each."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import as_file, files
from pathlib import Path

from rich.text import Text
from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime

from temporal_plans.cli.processes.fleet_places import FleetPlaces, running_places
from temporal_plans.cli.processes.fleet_story import ENVIRONMENTS, FleetStory
from temporal_plans.cli.processes.telling import told_until_stopped, while_running
from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.output import print_line, print_lines
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.values.failure import UserFacingError


@dataclass(frozen=True)
class FleetDemo:
    """``state_dir`` is the folder of all files, which stays with ``keep``. ``timeout`` is for the
    start, and for each chapter. ``run`` executes a command line of ``temporal-plan`` and returns
    its exit code."""

    state_dir: Path
    timeout: timedelta
    run: Callable[[Sequence[str]], int]
    keep: bool = False
    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None


class StateInUseError(UserFacingError, RuntimeError):
    """The folder has the state of an earlier demo, in which all has happened already."""

    usage = True


async def fleet_demo(settings: FleetDemo, *, proxy: int | None = None) -> int:
    """Tell the story until its end, Ctrl-C, or the end of the proxy (``signal_proxy``); return the
    exit code. No process is left, whatever happens. Raises StateInUseError."""
    if (settings.state_dir / "hub").exists():
        raise StateInUseError(
            f"--state-dir: {settings.state_dir} has the state of an earlier demo; name another one"
        )
    return await told_until_stopped(_played(settings), proxy)


async def _played(settings: FleetDemo) -> int:
    print_line(
        "Starting a hub and the spokes of the environments north and south, with a Temporal "
        "server each ..."
    )
    async with running_places(settings.state_dir, ENVIRONMENTS, settings.timeout) as places:
        print_lines(_place_lines(places))
        with (
            as_file(files("temporal_plans.cli") / "demo_fleet") as documents,
            _settings_of(places.hub.env),
        ):
            client = await _connected(places, settings)
            story = FleetStory(client, documents, settings.run, settings.timeout)
            code = await while_running(story.told(), places.ended())
        print_line("\nStopping everything.")
    kept = f" State is in {settings.state_dir}." if settings.keep else ""
    print_line(f"Nothing is left running.{kept}")
    return code


def _place_lines(places: FleetPlaces) -> list[Text]:
    rows = [(place.name, place.server.address, ", ".join(place.programs)) for place in places.all]
    return columns(("PLACE", "TEMPORAL", "BESIDE IT"), rows)


async def _connected(places: FleetPlaces, settings: FleetDemo) -> PlansClient:
    return PlansClient(
        await Client.connect(
            places.hub.server.address,
            data_converter=pydantic_data_converter,
            plugins=settings.plugins,
            runtime=settings.runtime,
        )
    )


@contextmanager
def _settings_of(env: Mapping[str, str]) -> Generator[None]:
    """Let commands of this process reach the hub, whatever the user's settings are."""
    before = dict(os.environ)
    _set_environment(env)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(env: Mapping[str, str]) -> None:
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)
