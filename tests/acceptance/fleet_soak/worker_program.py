"""The worker of a place, whose plans write down what they do."""

import sys
from collections.abc import Mapping
from pathlib import Path

from acceptance.programs import Program

PROGRAMS = Path(sys.executable).parent
WORKER = Path(__file__).parents[1] / "fleet_worker.py"


def worker_program(env: Mapping[str, str], log: Path) -> Program:
    return Program(Path(sys.executable), [str(WORKER)], env=env, log=log)
