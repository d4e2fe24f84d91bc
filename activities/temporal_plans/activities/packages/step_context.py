"""What the tasks of one step work with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.packages.access import LoadPackage
from temporal_plans.activities.packages.instance_objects import InstanceObjects
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.contexts import Installation
from temporal_plans.loading.packages.objects import read_objects
from temporal_plans.messages.packages import TasksInput


@dataclass(frozen=True)
class StepContext:
    """``texts`` are the rendered templates of all tasks of the step by key, or why one can't be
    rendered. ``params`` are the values of parameters as templates see them, those of secrets
    included: nothing of them may stand in a reason, which is for the step to show. ``load`` gives
    packages by their digests."""

    order: TasksInput
    installation: Installation
    params: Mapping[str, object]
    texts: Mapping[str, str | Reason]
    cluster: Cluster
    client: Client
    objects: InstanceObjects
    load: LoadPackage

    @property
    def package(self) -> Package:
        return self.installation.package

    def text(self, key: str) -> str:
        """Return a rendered template. Raises TaskProblem with what is wrong with it."""
        found = self.texts.get(key)
        if found is None:
            raise TaskProblem(f"template {key} was not rendered: it is none of the task's")
        if isinstance(found, Reason):
            raise TaskProblem(str(found))
        return found

    async def rendered(self, keys: Sequence[str], *, known_only: bool = False) -> list[Object]:
        """Return the objects of templates in their order, as they are to be applied; see
        ``InstanceObjects.enhanced``. Raises TaskProblem and ClusterError."""
        found: list[Object] = []
        for key in keys:
            read = read_objects(self.text(key))
            if read.faults:
                raise TaskProblem(f"template {key} gives no objects: {_listed(read.faults)}")
            manifests = [dict(one) for one in read.objects]
            found += await self.objects.enhanced(manifests, known_only=known_only)
        return found


def _listed(faults: Sequence[Reason]) -> str:
    """Without the values: they may be those of secrets."""
    return "; ".join(str(fault.but(value=None)) for fault in faults[:5])
