"""`temporal plan fleet decide`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from temporal_plans.cli.terminal.fleet_lines import decision_lines
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, print_lines
from temporal_plans.cli.terminal.promotion_lines import promotion_lines
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import FleetDecision, UnmetExpectation
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import ProductDecision
from temporal_plans.domain.fleets.results import DecideResult
from temporal_plans.loading.fleets.documents import ExpectationDocument
from temporal_plans.loading.fleets.expectations import unmet, unmet_promotions
from temporal_plans.loading.fleets.files import FleetFile, load_documents
from temporal_plans.loading.fleets.snapshots import product_states, snapshots


def decide_files(paths: Sequence[Path], at: datetime | None, *, as_json: bool) -> int:
    """Decide what the documents in some files say, and print it. Returns the exit code: 1 when an
    expectation is not met. Raises SpecError for documents that can't be used."""
    result = decided(load_documents(paths), at)
    if as_json:
        print_json(result)
    else:
        for index, one in enumerate(result.environments):
            if index:
                print_line()
            print_lines(decision_lines(one))
        for product in result.products:
            print_line()
            print_lines(promotion_lines(product))
    for fault in result.unmet:
        line = f":{fault.line}" if fault.line else ""
        print_error(f"{fault.source}{line}: {fault.message}")
    return 1 if result.unmet else 0


def decided(files: Sequence[FleetFile], at: datetime | None) -> DecideResult:
    """Return the decisions about documents at a time; without one at the times that they expect
    something for, or now. Raises SpecError for documents that can't be used."""
    expected = [(file, file.value) for file in files if isinstance(file.value, ExpectationDocument)]
    fallback = at or datetime.now(UTC)
    times = sorted({at or one.at or fallback for _, one in expected}) or [fallback]
    found: list[FleetDecision] = []
    products: list[ProductDecision] = []
    faults: list[UnmetExpectation] = []
    for time in times:
        answers = [decide(snapshot, time) for snapshot in snapshots(files, time)]
        found += answers
        promoted = [
            decide_promotions(state, time)
            for state in product_states(files, time)
            if state.pipeline is not None
        ]
        products += promoted
        for file, one in expected:
            if (one.at or time) == time:
                faults += _faults(file, one, answers, promoted)
    return DecideResult(environments=tuple(found), products=tuple(products), unmet=tuple(faults))


def _faults(
    file: FleetFile,
    expected: ExpectationDocument,
    answers: Sequence[FleetDecision],
    promoted: Sequence[ProductDecision],
) -> list[UnmetExpectation]:
    decisions = [one for answer in answers for one in answer.decisions]
    return [
        UnmetExpectation(source=file.source, line=file.problem(one).line, message=str(one))
        for one in (*unmet(expected, decisions), *unmet_promotions(expected, promoted))
    ]
