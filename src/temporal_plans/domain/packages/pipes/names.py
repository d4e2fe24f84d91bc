"""The names of the objects of a Pipe task."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporal_plans.domain.packages.artefacts import object_name
from temporal_plans.domain.packages.tasks.pipe import PipeTask
from temporal_plans.domain.values.refusal import Reason

_POD = "pipepod"
_NAME = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class PipeNames:
    """Where a Pipe task is: the instance's name, those of plan, phase and step, and the task."""

    instance: str
    plan: str
    phase: str
    step: str
    task: PipeTask

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return self._name(_POD)

    def artefact(self, key: str) -> str:
        """Return the name of the object that keeps the file of a key."""
        return self._name(key)

    def faults(self) -> Iterator[Reason]:
        """Yield why objects can't have these names."""
        taken: dict[tuple[str, str], str] = {}
        for file in self.task.pipe:
            name = self.artefact(file.key)
            if not _NAME.fullmatch(name) or len(name) > _NAME_LIMIT:
                fix = "instance, plan, phase, step, task and key need letters or digits, at most "
                fix += f"{_NAME_LIMIT} together"
                yield Reason(field="pipe", problem="can't name an object", value=name, fix=fix)
            if other := taken.get((file.kind, name)):
                problem = f"the keys {other} and {file.key} give one object, {name}"
                fix = "keys must differ in their letters and digits, ignoring case"
                yield Reason(field="pipe", problem=problem, fix=fix)
            taken[file.kind, name] = file.key

    def _name(self, last: str) -> str:
        return object_name(self.instance, self.plan, self.phase, self.step, self.task.name, last)
