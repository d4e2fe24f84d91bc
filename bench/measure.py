"""Runs all cases in turn in each round, so that other load on the machine affects all alike."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from uuid import uuid4

from temporalio.client import Client

from bench.cases import Case
from bench.processes import CpuTime, Processes, cpu_time

_RUN_TIMEOUT = 300  # seconds


@dataclass(frozen=True)
class Run:
    """One run of one case; ``seconds`` from the start of its workflow to its result."""

    case: Case
    seconds: float
    cpu: CpuTime | None

    @property
    def rate(self) -> float:
        """Steps per second."""
        return self.case.tree.size / self.seconds


@dataclass(frozen=True)
class Result:
    """All runs of one case. ``ratios`` are its rates divided by its baseline's, for each round."""

    case: Case
    runs: tuple[Run, ...]
    ratios: tuple[float, ...]

    @property
    def rates(self) -> tuple[float, ...]:
        return tuple(run.rate for run in self.runs)

    @property
    def rate(self) -> float:
        return median(self.rates)

    @property
    def ratio(self) -> float | None:
        return median(self.ratios) if self.ratios else None

    def cpu_ms(self, of: Callable[[CpuTime], float]) -> float | None:
        """Return the milliseconds of CPU time per step."""
        times = [of(run.cpu) for run in self.runs if run.cpu]
        return 1000 * median(times) / self.case.tree.size if times else None


async def measure(
    client: Client,
    processes: Processes,
    cases: Sequence[Case],
    rounds: int,
    report: Callable[[str], None],
) -> list[Result]:
    """Run every case once in small to warm up, then ``rounds`` times, each round from another case.

    ``report`` receives a line for every run. Raises TimeoutError for a run that does not end.
    """
    for case in cases:
        small = replace(case.tree, phases=1, steps=min(2, case.tree.steps))
        await case.run(client, f"warm-up/{uuid4().hex[:8]}", small)
    runs: list[Run] = []
    for number in range(rounds):
        turn = number % len(cases)
        for case in (*cases[turn:], *cases[:turn]):
            run = await _run(client, processes, case, number)
            report(f"round {number + 1} of {rounds}: {case.name}, {run.rate:.1f} steps/s")
            runs.append(run)
    return [_result(case, runs) for case in cases]


async def _run(client: Client, processes: Processes, case: Case, number: int) -> Run:
    id = f"bench-{case.name.replace(', ', '-').replace(' ', '-')}/{number}"
    before = cpu_time(processes)
    start = time.perf_counter()
    try:
        async with asyncio.timeout(_RUN_TIMEOUT):
            await case.run(client, id, case.tree)
    except TimeoutError:
        raise TimeoutError(f"{id} did not end within {_RUN_TIMEOUT} s") from None
    seconds = time.perf_counter() - start
    after = cpu_time(processes)
    return Run(case, seconds, after.since(before) if after and before else None)


def _result(case: Case, runs: Sequence[Run]) -> Result:
    own = [run for run in runs if run.case is case]
    floor = [run for run in runs if run.case.name == case.floor]
    pairs = zip(own, floor, strict=True) if floor else ()
    return Result(case, tuple(own), tuple(ours.rate / bare.rate for ours, bare in pairs))
