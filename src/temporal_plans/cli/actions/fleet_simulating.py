"""`temporal plan fleet simulate`."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from temporal_plans.cli.terminal.fleet_lines import simulation_lines
from temporal_plans.cli.terminal.output import print_json, print_lines
from temporal_plans.domain.fleets.simulation import PLAN_DURATION, LineKind, Simulation, simulate
from temporal_plans.loading.fleets.documents import EventsDocument
from temporal_plans.loading.fleets.files import FleetFile, load_documents
from temporal_plans.loading.fleets.snapshots import product_states, snapshots


def simulate_files(
    paths: Sequence[Path], at: datetime | None, length: timedelta, *, as_json: bool
) -> int:
    """Simulate what the documents in some files lead to, and print it. Returns the exit code: 1
    when an event could not happen. Raises SpecError for documents that can't be used."""
    result = simulated(load_documents(paths), at or datetime.now(UTC), length)
    if as_json:
        print_json(result)
    else:
        print_lines(simulation_lines(result))
    return 1 if any(one.kind is LineKind.REFUSED for one in result.entries) else 0


def simulated(files: Sequence[FleetFile], start: datetime, length: timedelta) -> Simulation:
    """Return the simulation of documents from a time on."""
    documents = [file.value for file in files if isinstance(file.value, EventsDocument)]
    durations = [one.plan_duration for one in documents if one.plan_duration is not None]
    return simulate(
        snapshots(files, start, ahead=length),
        [event for one in documents for event in one.events],
        start,
        start + length,
        products=product_states(files, start, ahead=length),
        plan_duration=durations[-1] if durations else PLAN_DURATION,
    )
