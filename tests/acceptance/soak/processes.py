"""Watches, for as long as a soak test lasts, that no task instance runs twice."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from acceptance import real_tasks

EVERY = 0.4

TOLERANCE = 2.0
"""Seconds that two launches of one task may be seen together: what was killed may take a moment to
go, and kill grace periods are a second."""

CLEARED_WITHIN = 20.0
"""The same when the agent of the older one was away, and so could be given up: counted while agent,
worker and server all run, it has to hear that the task lives elsewhere, and end it."""


class Machines(Protocol):
    """The agents, as whoever does them harm knows them."""

    @property
    def work_dirs(self) -> Mapping[str, Path]:
        """All that ever were, by agent."""
        ...

    def may_act(self, agent: str) -> bool:
        """Whether the agent and all that it needs to be told something run."""
        ...

    def last_away(self, agent: str) -> float:
        """When it was last not running; minus infinity for never."""
        ...


@dataclass
class _Twins:
    """Launches of one instance that are seen together, the oldest first. ``seen``: by an earlier
    look; ``counted``: seconds since then in which the agent could have ended the oldest."""

    tasks: list[str]
    seen: bool = False
    counted: float = 0.0
    told: bool = False


@dataclass
class ProcessWatch:
    """``faults`` are what must not have been; ``most`` is how many tasks ran at a time at most."""

    machines: Machines
    faults: list[str] = field(default_factory=list[str])
    looks: int = 0
    most: int = 0
    _since: dict[str, float] = field(default_factory=dict[str, float])
    _twins: dict[tuple[str, str], _Twins] = field(default_factory=dict[tuple[str, str], _Twins])
    _looked: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            places = await asyncio.to_thread(_places, dict(self.machines.work_dirs))
            self._look(places, time.monotonic())
            await asyncio.sleep(EVERY)

    def _look(self, places: Mapping[str, str], now: float) -> None:
        passed, self._looked = now - self._looked, now
        self.looks += 1
        self.most = max(self.most, len(places))
        self._since = {task: self._since.get(task, now) for task in places}
        twins = _together(self._since)
        self._twins = {
            instance: self._twins[instance]
            if instance in self._twins and self._twins[instance].tasks == tasks
            else _Twins(tasks)
            for instance, tasks in twins.items()
        }
        for one in self._twins.values():
            self._judge(one, places, passed)

    def _judge(self, twins: _Twins, places: Mapping[str, str], passed: float) -> None:
        oldest = twins.tasks[0]
        agent = places[oldest]
        if self.machines.may_act(agent) and twins.seen:
            twins.counted += passed
        twins.seen = True
        was_away = self.machines.last_away(agent) >= self._since[oldest] - EVERY
        if twins.counted > (CLEARED_WITHIN if was_away else TOLERANCE) and not twins.told:
            twins.told = True
            where = ", ".join(f"{task} on {places[task]}" for task in twins.tasks)
            away = "its agent was away, and is back" if was_away else "its agent was never away"
            self.faults.append(f"runs twice, for {twins.counted:.1f} s ({away}): {where}")


def _places(work_dirs: Mapping[str, Path]) -> dict[str, str]:
    """The agent of every task that has processes."""
    return {task: agent for agent, path in work_dirs.items() for task in real_tasks.running([path])}


def _together(since: Mapping[str, float]) -> dict[tuple[str, str], list[str]]:
    """By service and task instance, those that run more than once, the oldest first."""
    by_instance: dict[tuple[str, str], list[str]] = defaultdict(list)
    for task in sorted(since, key=lambda task: since[task]):
        service, instance, _ = task.split("__")
        by_instance[service, instance].append(task)
    return {instance: tasks for instance, tasks in by_instance.items() if len(tasks) > 1}
