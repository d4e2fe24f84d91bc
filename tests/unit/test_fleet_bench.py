"""The benchmark of decisions runs, and measures what it says."""

import json
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.fleets import NOW, fleet
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Outcome


def test_a_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "bench.json"
    main(["fleets", "--smoke", "--json", str(written)])
    result = json.loads(written.read_text())
    counts = {one["name"]: one["decisions"] for one in result["cases"]}
    assert counts["all, from nothing"] == 40
    assert counts["a clock edge, nothing due"] == 0
    assert 0 < counts["one event, kept index"] < 40
    assert counts["one event, kept index"] == counts["one event, indexed for it"]
    assert "one event, kept index" in capsys.readouterr().out


def test_its_fleet_waits_for_a_window() -> None:
    outcomes = [one.outcome for one in decide(fleet(40), NOW).decisions]
    assert (outcomes.count(Outcome.BLOCKED), outcomes.count(Outcome.NO_WORK)) == (4, 36)
