"""Reports the results as a table and as JSON."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.bare import WINDOW_SIZE
from bench.measure import Result
from temporal_plans.worker.dev import DYNAMIC_CONFIG, SQLITE_PRAGMAS

_PACKAGES = ("temporal-plans", "temporalio", "pydantic")


def conditions(server: Path) -> dict[str, Any]:
    """Return the conditions of the measurement: machine, versions, and the server's settings.

    ``server`` is the server's executable.
    """
    return {
        **machine(),
        "versions": {
            "python": platform.python_version(),
            "server": _server_version(server),
            **{name: version(name) for name in _PACKAGES},
        },
        "server_flags": {
            "dynamic_config": dict(DYNAMIC_CONFIG),
            "sqlite_pragmas": dict(SQLITE_PRAGMAS),
        },
        "bare_window": WINDOW_SIZE,
    }


def machine() -> dict[str, Any]:
    """Return when, and on which machine, the measurement is made."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()}",
        },
    }


def as_json(results: Sequence[Result], environment: dict[str, Any]) -> dict[str, Any]:
    return {**environment, "cases": [_case(result) for result in results]}


def _case(result: Result) -> dict[str, Any]:
    tree = result.case.tree
    return {
        "name": result.case.name,
        "phases": tree.phases,
        "steps_per_phase": tree.steps,
        "steps_per_second": {
            "median": result.rate,
            "lowest": min(result.rates),
            "highest": max(result.rates),
            "rounds": list(result.rates),
        },
        "floor": result.case.floor,
        "ratio_to_floor": result.ratio,
        "cpu_ms_per_step": {
            "server": result.cpu_ms(lambda cpu: cpu.server),
            "worker": result.cpu_ms(lambda cpu: cpu.worker),
        },
    }


def print_table(results: Sequence[Result], environment: dict[str, Any], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("case", no_wrap=True)
    for heading in ("steps", "steps/s", "from - to", "of bare", "server ms", "worker ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        tree = result.case.tree
        table.add_row(
            result.case.name,
            f"{tree.phases} x {tree.steps}",
            f"{result.rate:.1f}",
            f"{min(result.rates):.1f} - {max(result.rates):.1f}",
            _number(result.ratio, ".2f"),
            _number(result.cpu_ms(lambda cpu: cpu.server), ".1f"),
            _number(result.cpu_ms(lambda cpu: cpu.worker), ".1f"),
        )
    console.print(table)
    machine, versions = environment["machine"], environment["versions"]
    rounds = len(results[0].runs) if results else 0
    console.print(f"Medians of {rounds} rounds, the cases in turn; ms are CPU time per step.")
    console.print(f"{machine['cores']} cores, {machine['processor']}, {machine['system']}")
    console.print(", ".join(f"{name} {value}" for name, value in versions.items()))
    console.print(f"Server: {_flags(environment['server_flags'])}", markup=False)


def _flags(flags: dict[str, dict[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for kind in flags.values() for name, value in kind.items())


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _server_version(server: Path) -> str:
    output = subprocess.run([server, "--version"], capture_output=True, text=True, check=True)
    return output.stdout.strip().removeprefix("temporal version ")
