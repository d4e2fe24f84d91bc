"""`temporal plan fleet decide` and `fleet simulate`, and the scenario files among the examples."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from repository import ROOT
from temporal_plans.domain.fleets.results import DecideResult
from temporal_plans.loading.schema import json_schema
from unit.cli.kit import Run

FOLDER = ROOT / "examples" / "fleets"
EXAMPLES = sorted(
    path for one in ("", "defaults", "scenarios") for path in (FOLDER / one).glob("*.yml")
)
WINDOWS = ROOT / "examples" / "fleets" / "windows.yml"
SIMULATION = ROOT / "examples" / "fleets" / "simulation" / "fleet.yml"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_scenario_is_as_it_expects(run: Run, path: Path) -> None:
    ran = run("fleet", "decide", str(path))
    assert (ran.code, ran.err) == (0, "")
    assert "kind: expectation" in path.read_text()


def test_there_are_scenarios() -> None:
    assert len(EXAMPLES) >= 20


def test_decide_prints_a_table(run: Run) -> None:
    ran = run("fleet", "decide", str(WINDOWS), "--at", "2026-01-05T20:59:00Z")
    lines = ran.out.splitlines()
    assert lines[0] == ("prod-eu at Mon 2026-01-05 20:59Z, decides again Mon 2026-01-05 21:00Z")
    assert lines[2].split()[:5] == ["checkout", "1.0.0", "BLOCKED", "UPGRADE", "1.1.0"]
    assert "K20 OUTSIDE_WINDOW" in ran.out


def test_decide_prints_json_that_can_be_read_again(run: Run) -> None:
    ran = run("fleet", "decide", str(WINDOWS), "--json")
    value: dict[str, Any] = json.loads(ran.out)
    [first, second] = value["environments"]
    assert [one["decisions"][0]["outcome"] for one in (first, second)] == ["BLOCKED", "ISSUE"]
    plan = second["decisions"][0]["plan"]
    assert (plan["from"], plan["to"], plan["intent"]) == ("1.0.0", "1.1.0", "UPGRADE")
    assert DecideResult.model_validate_json(ran.out).environments[0].environment == "prod-eu"
    wanted = set(json_schema("fleet-decision")["$defs"]["Decision"]["properties"])
    assert set(first["decisions"][0]) == wanted


def test_an_unmet_expectation_is_named_with_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.yml"
    path.write_text(WINDOWS.read_text().replace("outcome: ISSUE", "outcome: NO_WORK"))
    ran = run("fleet", "decide", str(path))
    line = (
        path.read_text()
        .splitlines()
        .index("  prod-eu/checkout: {outcome: NO_WORK, intent: UPGRADE, to: 1.1.0}")
    )
    assert ran.code == 1
    assert f"f.yml:{line + 1}: decisions.prod-eu/checkout.outcome: expected NO_WORK" in ran.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--at", "tomorrow"), "is not a time"),
        (("--at", "2026-01-05T08:30:00"), "has no time zone"),
        (("--at", "0001-01-01T00:00:00+23:59"), "is out of range"),
    ],
)
def test_a_wrong_time_is_refused(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    ran = run("fleet", "decide", str(WINDOWS), *arguments)
    assert ran.code == 2
    assert complaint in ran.err


def test_a_malformed_document_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "f.yml"
    path.write_text("kind: environment\nname: prod\nsettings: {relase-channel: x}\n")
    ran = run("fleet", "decide", str(path))
    assert ran.code == 1
    assert "f.yml:3: settings.relase-channel: unknown key" in ran.err
    assert "did you mean release-channel?" in ran.err


def test_simulate_lists_what_happens(run: Run) -> None:
    ran = run("fleet", "simulate", str(SIMULATION), "--at", "2026-01-05T08:00:00Z", "--for", "3d")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    found = [
        (line[2], line[3], *line[5:7])
        for line in lines
        if len(line) > 5 and line[3] in ("ISSUED", "SUCCEEDED", "FAILED")
    ]
    assert found == [
        ("21:00Z", "ISSUED", "UPGRADE", "1.1.0"),
        ("21:20Z", "FAILED", "UPGRADE", "1.1.0"),
        ("01:20Z", "ISSUED", "UPGRADE", "1.1.0"),
        ("01:40Z", "SUCCEEDED", "UPGRADE", "1.1.0"),
        ("12:00Z", "ISSUED", "RECALL_ROLL_OFF", "1.2.0"),
        ("12:20Z", "SUCCEEDED", "RECALL_ROLL_OFF", "1.2.0"),
    ]


def test_a_simulation_in_which_nothing_happens_says_so(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "quiet.yml"
    path.write_text("kind: environment\nname: quiet\n")
    ran = run("fleet", "simulate", str(path), "--for", "1d", "--at", "2026-01-05T08:00:00Z")
    assert ran.out.splitlines()[1] == "nothing happens"


def test_an_event_that_can_not_happen_is_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "events.yml"
    path.write_text(
        "kind: events\nevents:\n"
        "  - {at: 2026-01-05T09:00:00Z, product: 'shop:chekout', revert: leak}\n"
        "  - {at: 2026-01-05T09:00:00Z, entity: checkout, command: restart}\n"
        "  - {at: 2026-01-05T09:00:00Z}\n"
    )
    ran = run(
        "fleet", "simulate", str(WINDOWS), str(path), "--at", "2026-01-05T08:00:00Z", "--json"
    )
    texts = [one["text"] for one in json.loads(ran.out)["entries"] if one["kind"] == "REFUSED"]
    assert ran.code == 1
    assert "did you mean shop:checkout?" in texts[0]
    assert "reason: is missing" in texts[1]
    assert "does nothing" in texts[2]


@pytest.mark.parametrize("length", ["0s", "soon", "1000d"])
def test_a_wrong_length_is_refused(run: Run, length: str) -> None:
    assert run("fleet", "simulate", str(WINDOWS), "--for", length).code == 2


DOCUMENTED = [
    line.removeprefix("$ temporal plan ")
    for page in ("README.md", "docs/fleets.md")
    for line in (ROOT / page).read_text().splitlines()
    if line.startswith(("$ temporal plan fleet decide ", "$ temporal plan fleet simulate "))
]
"""Those that need no server."""


@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_command_runs(run: Run, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(ROOT)
    assert run(*line.split()).code == 0


BLOCKS = [
    block
    for block in re.findall(
        r"^```console\n(\$ temporal plan fleet (?:decide|simulate) .*?)^```",
        (ROOT / "docs" / "fleets.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    if block.count("\n") > 1
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_what_is_documented_is_what_is_printed(
    run: Run, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    """A line of `…` stands for lines that are left out."""
    monkeypatch.chdir(ROOT)
    command, _, shown = block.partition("\n")
    printed = run(*command.removeprefix("$ temporal plan ").split()).out
    pattern = ".*\n".join(re.escape(part) for part in shown.split("…\n"))
    assert re.fullmatch(pattern.replace(".*\n", "(?s:.*)"), printed)


def test_blocks_are_documented() -> None:
    assert len(BLOCKS) >= 3
