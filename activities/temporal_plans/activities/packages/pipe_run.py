"""One run of a Pipe task: its pod, the files in it, and the objects that keep them.

What was made for a run of the step (``TasksInput.attempt``) is not made again for it: the objects
say for which run they were made, and so does the pod. A crash at any moment leaves one of

- nothing, or a pod of an earlier run, which is replaced;
- the pod of this run: it goes on, and the same files give the same objects;
- all objects of this run, and perhaps the pod: it is deleted, and the task is done.

Contents of files are in the memory of this process only, on their way to the objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporal_plans.activities.kubernetes.cluster import Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.pod_command import Container
from temporal_plans.activities.kubernetes.pod_file import read_file
from temporal_plans.activities.packages.secret_values import HiddenValues
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import TaskState
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import part
from temporal_plans.domain.packages.pipes.artefact import (
    FILE_SIZE_LIMIT,
    artefact,
    for_step_run,
    is_of_step_run,
)
from temporal_plans.domain.packages.pipes.names import PipeNames
from temporal_plans.domain.packages.pipes.pod import WAITER, file_path
from temporal_plans.domain.packages.pipes.progress import PodState, made_by, pod_progress
from temporal_plans.domain.packages.tasks.pipe import PipeFile
from temporal_plans.domain.values.refusal import SpecError

ALL_FILES_LIMIT = 16 * FILE_SIZE_LIMIT
"""Bytes of all files of a task together: they are in memory at once."""


@dataclass(frozen=True)
class PipeRun:
    """``pod`` is what is to be applied; ``kept`` are the identities of the objects that keep the
    files, and ``token`` that of the step's run."""

    context: StepContext
    names: PipeNames
    pod: Object
    kept: Sequence[Object]
    token: str

    async def look(self) -> TaskState:
        """Go on from what there is, and return how far it is. Raises TaskProblem, ClusterError."""
        if await self._is_made():
            return await self._end()
        live = await self.context.cluster.get(self.pod)
        if live is None:
            await self.context.objects.apply([self.pod])
            return self._waiting("it was made a moment ago")
        if part(live, "metadata").get("deletionTimestamp"):
            return self._waiting("it is being deleted, to be made again")
        if not is_of_step_run(live, self.token):
            await self.context.cluster.delete(self.pod)
            return self._waiting("it is of an earlier run, and is deleted")
        return await self._go_on(live)

    async def _go_on(self, live: Object) -> TaskState:
        progress = pod_progress(live)
        match progress.state:
            case PodState.WAITING:
                return self._waiting(progress.reason)
            case PodState.FAILED:
                raise self._problem(progress.reason)
            case PodState.LOST:
                await self.context.cluster.delete(self.pod)
                raise self._problem(progress.reason, passing=True)
            case PodState.READY:
                await self._keep(await self._files(live))
                return await self._end()

    async def _is_made(self) -> bool:
        """Whether all objects are there, made for this run of the step."""
        for reference in self.kept:
            if not is_of_step_run(await self.context.cluster.get(reference), self.token):
                return False
        return True

    async def _end(self) -> TaskState:
        await self.context.cluster.delete(self.pod)
        return TaskState(done=True, gone=(self._ref,))

    async def _files(self, live: Object) -> Mapping[str, bytes]:
        """Return the contents of the files by key, all of one execution of the init container."""
        container = Container(self._ref.namespace, self._ref.name, WAITER)
        contents: dict[str, bytes] = {}
        left = ALL_FILES_LIMIT
        for file in self._pipe:
            limit = min(left, FILE_SIZE_LIMIT)
            content = await read_file(self.context.cluster, container, file_path(file), limit=limit)
            contents[file.key] = content
            left -= len(content)
        again = await self.context.cluster.get(self.pod)
        if again is None or made_by(again) != made_by(live):
            raise self._problem("it was replaced while its files were read", passing=True)
        return contents

    async def _keep(self, contents: Mapping[str, bytes]) -> None:
        """Apply the objects with the contents, unless another execution of this step did so since
        the pod was looked at: that one may have had another pod."""
        made = [self._artefact(file, contents[file.key]) for file in self._pipe]
        wanted = await self.context.objects.enhanced(made)
        hidden = HiddenValues()
        hidden.add_objects(wanted)
        if await self._is_made():
            return
        try:
            await self.context.objects.apply(wanted)
        except ClusterError as error:
            problem = TaskProblem(hidden.hide(str(error)), passing=error.passing, about=error.about)
            raise problem from None

    def _artefact(self, file: PipeFile, content: bytes) -> Object:
        try:
            made = artefact(file, self.names.artefact(file.key), content)
        except SpecError as refused:
            reasons = "; ".join(map(str, refused.reasons))
            raise self._problem(f"{file_path(file)}: {reasons}") from None
        return for_step_run(made, self.token)

    @property
    def _pipe(self) -> Sequence[PipeFile]:
        return self.names.task.pipe

    @property
    def _ref(self) -> ObjectRef:
        return ObjectRef.of(self.pod)

    def _waiting(self, reason: str) -> TaskState:
        return TaskState(done=False, reason=f"{self._ref}: {reason}", about=self._ref)

    def _problem(self, reason: str, *, passing: bool = False) -> TaskProblem:
        return TaskProblem(f"{self._ref}: {reason}", passing=passing, about=self._ref)
