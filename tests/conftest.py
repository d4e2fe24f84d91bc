"""Options of the whole suite."""

import functools
import gc
import os
import signal
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.worker import Worker

import properties
from temporal_plans.worker import ports

properties.register()  # before pytest loads the one that it is told
import_module("temporal_plans.cli")  # garbage is collected as in all processes of ours

UNIT = Path(__file__).parent / "unit"
KUBERNETES = Path(__file__).parent / "kubernetes"


def _share_ports() -> None:
    """Give each process of tests ports of its own: a port is chosen before its server listens."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports.PORTS = ports.PORTS[number % count :: count]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-workflow-cache",
        action="store_true",
        help="workers in the tests' own process replay every workflow at every workflow task",
    )
    parser.addoption(
        "--soak-minutes", type=float, default=3, help="how long the soak test takes (default: 3)"
    )
    parser.addoption(
        "--fleet-soak-minutes",
        type=float,
        default=1,
        help="how long the soak test of fleets takes (default: 1)",
    )
    parser.addoption(
        "--fleet-soak-pause",
        type=float,
        default=1,
        help="seconds between what each person does to the fleet (default: 1)",
    )
    parser.addoption(
        "--soak-seed", type=int, default=1, help="what the soak tests do, and in which order"
    )
    parser.addoption(
        "--soak-networks",
        action="store_true",
        help="the soak test's networks stall, delay, reset, refuse and forget connections",
    )
    parser.addoption(
        "--soak-clocks",
        action="store_true",
        help="the soak test's clocks jump by an hour (needs a C compiler, cc)",
    )
    parser.addoption(
        "--fuzz-inputs", type=int, default=320, help="malformed inputs to workflows (default: 320)"
    )
    parser.addoption(
        "--kills",
        type=int,
        default=2,
        help="how often each process is killed in a kill test (default: 2)",
    )
    parser.addoption(
        "--kills-seed",
        type=int,
        default=1,
        help="at which moments, in the kill tests of a deploy and of a fleet",
    )
    parser.addoption("--fuzz-seed", type=int, default=1, help="which malformed inputs")
    parser.addoption(
        "--one-in", type=int, default=1, metavar="N", help="a sample: every Nth of the tests"
    )
    parser.addoption(
        "--sample-seed", type=int, default=1, help="with which test the sample of --one-in begins"
    )


def pytest_configure(config: pytest.Config) -> None:
    _share_ports()
    config.addinivalue_line(
        "markers",
        "cached(reason): makes no sense with --no-workflow-cache, or takes minutes, and is skipped",
    )
    config.addinivalue_line(
        "markers", "engine(**settings): what EngineSettings the test's own worker has"
    )
    config.addinivalue_line(
        "markers", "deadlines(**deadlines): the Deadlines of the test's gateway"
    )
    config.addinivalue_line(
        "markers", "long: takes minutes, much of which it waits: begun first, others run beside it"
    )
    if config.getoption("--no-workflow-cache"):
        _replay_always()
    # Temporal's server takes a fifth less of the processor so; memory is not what tests lack.
    os.environ.setdefault("GOGC", "400")
    if not any(map(_is_of_kubernetes, _paths(config))):
        # And a sixth less: its threads look for each other's work. There are more tests at a time
        # than processors.
        os.environ.setdefault("GOMAXPROCS", "1")
    # Hundreds of processes of ours would each compile all sources anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background jobs so, and all that they start in turn would ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The ring ``tests/kubernetes`` runs only where its path is given."""
    left_out = collection_path == KUBERNETES and not any(map(_is_of_kubernetes, _paths(config)))
    return True if left_out else None


def pytest_report_header(config: pytest.Config) -> str | None:
    paths = _paths(config)
    if any(map(_is_of_kubernetes, paths)) or not any(map(KUBERNETES.is_relative_to, paths)):
        return None
    return "tests/kubernetes: not run; `make test-kubernetes` runs it"


def _paths(config: pytest.Config) -> list[Path]:
    """The files and folders that the tests are taken from."""
    start = config.invocation_params.dir
    return [(start / arg.split("::")[0]).resolve() for arg in config.args]


def _is_of_kubernetes(path: Path) -> bool:
    return path.is_relative_to(KUBERNETES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    _sample(config, items)
    if not config.getoption("--no-workflow-cache"):
        return
    for item in items:
        if mark := item.get_closest_marker("cached"):
            item.add_marker(pytest.mark.skip(reason=f"--no-workflow-cache: {mark.args[0]}"))


def pytest_collection_finish() -> None:
    """What was imported and collected stays: garbage is not looked for there again and again."""
    gc.collect()
    gc.freeze()


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    step = cast(int, config.getoption("--one-in"))
    start = cast(int, config.getoption("--sample-seed")) % step
    left_out = [item for number, item in enumerate(items) if number % step != start]
    if left_out:
        items[:] = items[start::step]
        config.hook.pytest_deselected(items=left_out)


def _turn(item: pytest.Item) -> int:
    """What takes minutes first, and last what takes moments: so all processes end together."""
    if item.get_closest_marker("long"):
        return 0
    return 2 if item.path.is_relative_to(UNIT) else 1


def _replay_always() -> None:
    """Replay shows code that is not deterministic. A worker is told so when it is made."""
    made: Callable[..., None] = Worker.__init__  # pyright: ignore[reportUnknownVariableType]

    @functools.wraps(made)
    def init(self: Worker, *args: Any, **options: Any) -> None:
        made(self, *args, **{**options, "max_cached_workflows": 0})

    Worker.__init__ = init  # type: ignore[method-assign]
