"""``python -m bench steps [--rounds N] [--phases N] [--steps N] [--json FILE] [--smoke]``, and
``python -m bench fleets [--rounds N] [--sizes N,N] [--json FILE] [--smoke]``"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.cases import step_cases
from bench.fleets import fleets_as_json, measure_fleets, print_fleets
from bench.measure import measure
from bench.processes import running
from bench.publishing import Spread, measure_publishing, print_publishing, publishing_as_json
from bench.report import as_json, conditions, machine, print_table
from temporal_plans.client.temporal.connection import Connection, connect
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.server_binary import server_binary

_SIZES = [200, 2_000, 20_000]
_TABLE_WIDTH_MINIMUM = 100  # columns; the default of a pipe is 80, which is too narrow


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"not a positive number (found {text}); write 1 or more")
    return value


def _counts(text: str) -> list[int]:
    return [_count(one) for one in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench", description="Measure the speed of plans.")
    benches = parser.add_subparsers(dest="bench", required=True)
    steps = benches.add_parser("steps", help="steps per second, compared with bare Temporal")
    steps.add_argument("--rounds", type=_count, default=5)
    steps.add_argument("--phases", type=_count, default=10)
    steps.add_argument("--steps", type=_count, default=50, help="steps of each phase")
    steps.add_argument("--serial-steps", type=_count, default=50, help="steps of the serial cases")
    steps.add_argument(
        "--only", default="", metavar="TEXT", help="only cases with TEXT in their name"
    )
    steps.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    steps.add_argument("--smoke", action="store_true", help="run one small round as a test")
    fleets = benches.add_parser("fleets", help="decisions about fleets per second")
    fleets.add_argument("--rounds", type=_count, default=5)
    fleets.add_argument("--sizes", type=_counts, default=_SIZES, metavar="N,N", help="entities")
    fleets.add_argument(
        "--environments", type=_count, default=100, help="that a release is published to"
    )
    fleets.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    fleets.add_argument("--smoke", action="store_true", help="run one small round as a test")
    return parser


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def _steps(options: argparse.Namespace) -> None:
    if options.smoke:
        options.rounds, options.phases, options.steps, options.serial_steps = 1, 2, 3, 3
    cases = [
        case
        for case in step_cases(options.phases, options.steps, options.serial_steps)
        if options.only in case.name
    ]
    if not cases:
        sys.exit(f"bench: --only: no case name contains {options.only!r}")
    with tempfile.TemporaryDirectory(prefix="temporal-plans-bench-") as directory:
        async with running(Path(directory)) as processes:
            client = await connect(Connection(address=processes.address))
            results = await measure(client, processes, cases, options.rounds, _print_progress)
    environment = conditions(await server_binary())
    print_table(results, environment, _console())
    if options.json:
        options.json.write_text(json.dumps(as_json(results, environment), indent=2) + "\n")


def _console() -> Console:
    return Console(width=max(Console().width, _TABLE_WIDTH_MINIMUM))


async def _publishing(environments: int, rounds: int) -> tuple[Spread, Spread]:
    with tempfile.TemporaryDirectory(prefix="temporal-plans-bench-") as directory:
        async with running(Path(directory)) as processes:
            client = await connect(Connection(address=processes.address), plugins=[PlansPlugin()])
            return await measure_publishing(client, environments, rounds, _print_progress)


def _fleets(options: argparse.Namespace) -> None:
    if options.smoke:
        options.rounds, options.sizes, options.environments = 1, [40], 3
    results = measure_fleets(options.sizes, options.rounds, _print_progress)
    print_fleets(results, _console())
    own, bare = asyncio.run(_publishing(options.environments, options.rounds))
    print_publishing(own, bare, _console())
    if options.json:
        found = fleets_as_json(results, machine())
        found["publishing"] = publishing_as_json([own, bare])
        options.json.write_text(json.dumps(found, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.bench == "fleets":
        _fleets(options)
    else:
        asyncio.run(_steps(options))


if __name__ == "__main__":
    main()
