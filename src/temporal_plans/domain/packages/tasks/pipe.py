"""The task kind ``Pipe``."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.value import ENTRIES_LIMIT, PackageValue, Text
from temporal_plans.domain.values.refusal import Reason

_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ARTEFACTS = ("Secret", "ConfigMap")


class PipeFile(PackageValue):
    """A file that the pod makes, and the object that keeps its content."""

    file: Text = Field(default="", description="The path of a file that becomes one entry.")
    env_file: Text = Field(
        default="", description="The path of a file of NAME=VALUE lines: an entry each."
    )
    kind: Text = Field(default="", description="`Secret` or `ConfigMap`.")
    key: Text = Field(default="", description="Its name in templates: `.Pipes.KEY`.")

    def faults(self) -> Iterator[Reason]:
        """Yield what is wrong with it; ``field`` is the key in it."""
        if bool(self.file) == bool(self.env_file):
            both = "has both file and envFile" if self.file else "has neither file nor envFile"
            yield Reason(problem=both, fix="write exactly one of them")
        if self.kind not in _ARTEFACTS:
            fix = f"write {' or '.join(_ARTEFACTS)}"
            yield Reason(field="kind", problem="is unknown", value=self.kind, fix=fix)
        if not _KEY.fullmatch(self.key):
            fix = "write letters, digits, _ and - only"
            yield Reason(field="key", problem="can't be a key", value=self.key, fix=fix)


class PipeTask(PackageTask):
    """Run a pod that makes files, and keep them in Secrets and ConfigMaps."""

    kind: Literal["Pipe"] = "Pipe"
    pod: Text = Field(default="", description="The template of the pod.")
    pipe: tuple[PipeFile, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The files."
    )

    @property
    def templates(self) -> Sequence[str]:
        return (self.pod,) if self.pod else ()

    @property
    def pipes(self) -> Sequence[str]:
        return [file.key for file in self.pipe]

    def faults(self) -> Iterator[Reason]:
        if not self.pod:
            yield Reason(field="pod", problem="is missing", fix="name a file below templates/")
        if not self.pipe:
            yield Reason(field="pipe", problem="is missing or empty", fix="list at least one file")
        for index, file in enumerate(self.pipe):
            for fault in file.faults():
                path = f"pipe.{index}"
                yield fault.but(field=f"{path}.{fault.field}" if fault.field else path)
