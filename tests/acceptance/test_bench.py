"""The benchmark runs, and says what it measured and under which conditions."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.bare import Tree
from bench.cases import Case
from bench.measure import Result, Run

ROOT = Path(__file__).parent.parent.parent


async def test_a_smoke_run(tmp_path: Path) -> None:
    written = tmp_path / "bench.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench", "steps", "--smoke", "--json", str(written)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said, complained = await process.communicate()
    assert process.returncode == 0, complained.decode()
    result = json.loads(written.read_text())
    cases = {case["name"]: case for case in result["cases"]}
    for ours in ("tree", "tree, inline", "serial", "serial, inline"):
        floor, plan = cases.pop(f"bare {ours}"), cases.pop(f"plan {ours}")
        assert (floor["floor"], floor["ratio_to_floor"]) == (None, None)
        assert plan["floor"] == floor["name"]
        assert plan["ratio_to_floor"] == pytest.approx(
            plan["steps_per_second"]["median"] / floor["steps_per_second"]["median"]
        )
        assert f"plan {ours}" in said.decode()
    assert not cases
    assert result["machine"]["cores"] > 0
    assert "Server 1." in result["versions"]["server"]
    assert "history.transferProcessorMaxPollRPS" in result["server_flags"]["dynamic_config"]


async def _never_run(*_: object) -> None:
    raise AssertionError("only its numbers are looked at")


def test_ratios_are_taken_round_by_round() -> None:
    """A slow minute slows both sides of a round, and so leaves the ratio as it is."""
    tree = Tree(phases=2, steps=10)
    floor = Case("bare tree", tree, _never_run)
    runs = tuple(Run(Case("plan tree", tree, _never_run, "bare tree"), s, None) for s in (2, 20, 4))
    result = Result(runs[0].case, runs, ratios=(0.8, 0.9, 0.7))
    assert result.rates == (10, 1, 5)
    assert (result.rate, result.ratio) == (5, 0.8)
    assert Result(floor, runs, ()).ratio is None
