"""``temporal-plan demo --fleet`` in a pipe, as a whole: what it tells, and that nothing is left."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.programs import Said, run
from acceptance.test_cli import PROGRAMS, environment, processes_in

DEMO_TIMEOUT = 600.0
"""Seconds that the whole story may take, where it shares the machine with other tests."""

MOMENTS = (
    "[1/7] ",
    "$ temporal-plan fleet apply ",
    "[2/7] ",
    "$ temporal-plan fleet publish shop:web 1.0.0 ",
    "north/web: nothing installed; plan 1 INSTALL to 1.0.0 is ",
    "south/web: 1.0.0; UP_TO_DATE",
    "cycle: database -> web -> database",
    "[3/7] ",
    "from early to stable: EVALUATING (SOAKING)",
    "north/web: 1.1.0; UP_TO_DATE",
    "[4/7] ",
    "[5/7] ",
    "south/database: 1.0.0; plan 2 UPGRADE to 1.1.0 waits, OUTSIDE_WINDOW outside the downtime "
    "window, which next opens ",
    "south/web: 1.1.0; UP_TO_DATE",
    "[6/7] ",
    "north/mail is suppressed (failed-plan failed-mail-2) until ",
    "north/mail: 1.0.0; plan 4 UPGRADE to 1.1.0 waits, SUPPRESSED ",
    "[7/7] ",
    "south/web: 1.1.0; plan 3 RECALL_ROLL_OFF to 1.0.0 waits, SUPPRESSED ",
    "$ temporal-plan fleet unsuppress ",
    "south/database: 1.2.0; UP_TO_DATE",
    "$ temporal-plan fleet status",
    "\nWhat happened\n",
    "\nStopping everything.\nNothing is left running.\n",
)
"""What is told, in this order; between them are other things."""

PLANS = {
    "north/database": ["INSTALL to 1.0.0", "UPGRADE from 1.0.0 to 1.1.0"],
    "north/mail": [
        "INSTALL to 1.0.0",
        "UPGRADE from 1.0.0 to 1.1.0: verify/answers: the command ended FAILED",
        "ROLLBACK from 1.1.0 to 1.0.0",
    ],
    "north/web": [
        "INSTALL to 1.0.0",
        "UPGRADE from 1.0.0 to 1.1.0",
        "RECALL_ROLL_OFF from 1.1.0 to 1.0.0",
    ],
    "south/database": [
        "INSTALL to 1.0.0",
        "UPGRADE from 1.0.0 to 1.1.0",
        "UPGRADE from 1.1.0 to 1.2.0",
    ],
    "south/web": [
        "INSTALL to 1.0.0",
        "UPGRADE from 1.0.0 to 1.1.0",
        "RECALL_ROLL_OFF from 1.1.0 to 1.0.0",
    ],
}
"""What the time line has of each entity: all its plans."""

FAILED = [("north/mail", 2)]

ORDER = (
    ("north/database: plan 2 UPGRADE", "north/web: plan 2 UPGRADE"),
    ("shop:database: 1.1.0 is published", "shop:database: 1.1.0 is on stable, by the stage"),
    ("shop:database: 1.1.0 is on stable", "south: windows are open for downtime"),
    ("south: windows are open for downtime", "south/database: plan 2 UPGRADE"),
    ("south/database: plan 2 UPGRADE", "south/web: plan 2 UPGRADE"),
    ("north/mail: plan 2 UPGRADE", "north/mail: plan 3 ROLLBACK"),
    ("shop:database: 1.2.0 is published", "shop:web: recall 1.1.0"),
    ("shop:web: recall 1.1.0", "south: suppression look is removed"),
    ("south: suppression look is removed", "south/web: plan 3 RECALL_ROLL_OFF"),
    ("south/web: plan 3 RECALL_ROLL_OFF", "south/database: plan 3 UPGRADE from 1.1.0 to 1.2.0"),
)
"""Pairs of what the time line has, the earlier one first."""


@pytest.mark.timeout(DEMO_TIMEOUT + 60)
async def test_the_demo_of_fleets(tmp_path: Path) -> None:
    env = {**environment(), "TMPDIR": str(tmp_path)}
    program = PROGRAMS / "temporal-plan"
    words = ("demo", "--fleet", "--timeout", "5m")
    said = await run(program, *words, env=env, cwd=tmp_path, limit=DEMO_TIMEOUT)
    assert (said.code, said.err) == (0, ""), str(said)
    assert "\x1b" not in said.out
    _assert_in_order(said)
    _assert_time_line(said)
    assert processes_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


async def test_the_state_of_an_earlier_demo_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    program, words = PROGRAMS / "temporal-plan", ("demo", "--fleet", "--state-dir", str(tmp_path))
    said = await run(program, *words, env=environment(), cwd=tmp_path, limit=DEMO_TIMEOUT)
    assert (said.code, said.out) == (2, ""), str(said)
    assert said.err == (
        f"Error: --state-dir: {tmp_path} has the state of an earlier demo; name another one\n"
    )


def _assert_in_order(said: Said) -> None:
    at = 0
    for moment in MOMENTS:
        found = said.out.find(moment, at)
        assert found >= 0, f"not after what precedes it: {moment!r}\n{said}"
        at = found + len(moment)


def _assert_time_line(said: Said) -> None:
    rows = list(_time_line(said.out))
    plans = [row for row in rows if row[1] != "-"]
    assert len(plans) == sum(map(len, PLANS.values())), str(said)
    for entity, wanted in PLANS.items():
        found = [row[1:] for row in plans if row[0] == entity]
        for number, (what, (result, told)) in enumerate(zip(wanted, found, strict=True), start=1):
            assert told.startswith(f"plan {number} {what}"), str(said)
            assert (result == "FAILED") == ((entity, number) in FAILED), str(said)
    texts = [f"{where}: {what}" for where, _, what in rows]
    for earlier, later in ORDER:
        assert _index(texts, earlier) < _index(texts, later), str(said)


def _time_line(out: str) -> Iterator[tuple[str, str, str]]:
    """Yield where, the result and what of each row."""
    *_, table = out.partition("What happened\n")
    for line in table.splitlines():
        if line.startswith("+"):
            _, where, result, _, what = re.split(r"  +", line, maxsplit=4)
            yield where, result, what


def _index(texts: list[str], beginning: str) -> int:
    return next(i for i, text in enumerate(texts) if text.startswith(beginning))
