"""Taking over the instances that another controller of packages left in a cluster.

What reads packages is imported where it is needed: other commands would load YAML for it.
"""

from collections.abc import Sequence
from datetime import timedelta

from temporal_plans.client.errors import Refused
from temporal_plans.client.verbs.packages import PackageVerbs
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import definition_of
from temporal_plans.domain.packages.left_instances import Adoption, LeftInstance, LeftPackage
from temporal_plans.domain.packages.nesting import Nested
from temporal_plans.domain.packages.resolution import resolve
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.services.service_name import length_problem, separator_problem
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError, SpecError
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.packages import (
    Adopted,
    AdoptedRun,
    ClusterAnswer,
    ClusterQuestion,
    InstalledPackage,
    InstanceInput,
    PackageDeployResult,
)

_WORKER_TIMEOUT = timedelta(seconds=20)
"""How long a question waits for a worker of the cluster."""


class Imported(CompactValue):
    """What became of one instance. ``service`` is empty when it was not taken over, and
    ``problems`` are why not. ``present``: that was done before. ``notes`` are what people should
    know: templates of pods that the first apply would change, and runs that were not over."""

    instance: str
    namespace: str
    service: str = ""
    package: str = ""
    version: str = ""
    parameters: int = 0
    plans: int = 0
    objects: int = 0
    present: bool = False
    problems: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()


class TakeoverVerbs(PackageVerbs):
    """The verbs for what is in a cluster already."""

    async def ask_cluster(self, question: ClusterQuestion) -> ClusterAnswer:
        """Ask the worker of a cluster. Raises ClusterUnreachable, and Refused with its reason when
        it has no answer."""
        answer = await self._gateway.ask_cluster(
            question.cluster, "ask_cluster", question, ClusterAnswer, timeout=_WORKER_TIMEOUT
        )
        if answer.problem:
            raise Refused.of(Code.UNAVAILABLE, answer.problem, field="cluster")
        return answer

    async def left_instances(self, cluster: str, namespace: str = "") -> Sequence[LeftInstance]:
        """Return the instances that a controller left. Raises Refused."""
        question = ClusterQuestion(cluster=cluster, namespace=namespace)
        return (await self.ask_cluster(question)).instances

    async def import_instances(
        self, cluster: str, namespace: str = "", *, dry_run: bool = False, by: str = ""
    ) -> list[Imported]:
        """Take over all instances of a cluster, or of one of its namespaces. With ``dry_run``
        nothing is changed. Raises Refused when the cluster does not answer."""
        found = await self.left_instances(cluster, namespace)
        taken: set[str] = set()
        made: list[Imported] = []
        for left in sorted(found, key=lambda one: (one.namespace, one.name)):
            one = Imported(instance=left.name, namespace=left.namespace)
            try:
                one = await self._import(one, left, cluster, taken, dry_run=dry_run, by=by)
            except RefusedError as refused:
                one = one.but(problems=refused.reasons)
            taken.add(one.service)
            made.append(one)
        return made

    async def _import(
        self,
        one: Imported,
        left: LeftInstance,
        cluster: str,
        taken: set[str],
        *,
        dry_run: bool,
        by: str,
    ) -> Imported:
        if left.deleting:
            raise SpecError([Reason(field=str(left), problem="is being deleted")])
        name, present = await self._name_for(left, cluster, taken)
        if present:
            return one.but(service=name, present=True)
        question = ClusterQuestion(
            cluster=cluster, namespace=left.version_namespace, version=left.version
        )
        package = (await self.ask_cluster(question)).package
        change = await self._change(left, package or LeftPackage(name=""), cluster)
        adoption = await self._adoption(name, left, cluster, change)
        request = InstanceInput(
            name=name, change=change, by=by, reason="taken over", adopted=_adopted(left, adoption)
        )
        if not dry_run:
            await self._gateway.start_and_update(
                "Instance", service_id(name), request, "deploy", PackageDeployResult
            )
        assert change.package is not None
        return one.but(
            service=name,
            package=change.package.name,
            version=change.package.version,
            parameters=len(change.parameters),
            plans=len(left.runs),
            objects=len(adoption.inventory),
            notes=tuple(_notes(left, adoption)),
        )

    async def _name_for(
        self, left: LeftInstance, cluster: str, taken: set[str]
    ) -> tuple[str, bool]:
        """Return the service's name, and whether it has this instance already."""
        for name in (left.name, f"{left.namespace}-{left.name}"):
            content = await self.content_of(name)
            if content == "package":
                known = await self.instance(name)
                place = (known.cluster, known.namespace, known.instance)
                if place == (cluster, left.namespace, left.name):
                    return name, True
            if not content and name not in taken:
                if problems := [*separator_problem(name), *length_problem(name)]:
                    raise SpecError(problems)
                return name, False
        problem = f"the service names {left.name} and {left.namespace}-{left.name} are taken"
        raise Refused.of(Code.NAME_TAKEN, problem, fix="uninstall one of them, and import again")

    async def _change(
        self, left: LeftInstance, package: LeftPackage, cluster: str
    ) -> ChangeRequest:
        """Put the package into the content store, and return the request that installs it. Raises
        SpecError and Refused with every reason against it."""
        from temporal_plans.loading.packages.left_package import left_files
        from temporal_plans.loading.packages.reader import read_files
        from temporal_plans.loading.packages.stored import stored_archive
        from temporal_plans.loading.packages.structures import decode

        source = f"OperatorVersion {left.version}"
        try:
            files = left_files(package)
        except ValueError as error:
            raise SpecError([Reason(field=source, problem=str(error))]) from error
        read = read_files(files, source)
        if read.faults:
            raise SpecError([fault.as_reason() for fault in read.faults], source=source)
        if any(isinstance(task, NestedTask) for task in read.package.operator.tasks):
            fix = "deploy it from its folder under another name, and move its data"
            problem = "it has packages nested in it, of which the cluster does not keep the files"
            raise SpecError([Reason(field=source, problem=problem, fix=fix)])
        digest = await self._gateway.put_content(stored_archive(files, Nested()))
        change = ChangeRequest(
            package=definition_of(read.package, digest),
            parameters=dict(left.given),
            instance=left.name,
            cluster=cluster,
            namespace=left.namespace,
        )
        resolved = resolve(None, change, decode)
        if isinstance(resolved, Refusal):
            raise Refused(resolved)
        return change

    async def _adoption(
        self, name: str, left: LeftInstance, cluster: str, change: ChangeRequest
    ) -> Adoption:
        assert change.package is not None
        package = InstalledPackage(
            service=name,
            instance=left.name,
            cluster=cluster,
            namespace=left.namespace,
            content=change.package.content,
            given=dict(left.given),
        )
        answer = await self.ask_cluster(ClusterQuestion(cluster=cluster, package=package))
        return answer.adoption or Adoption()


def _adopted(left: LeftInstance, adoption: Adoption) -> Adopted:
    runs = [AdoptedRun(plan=run.plan, uid=run.uid, status=run.ours, at=run.at) for run in left.runs]
    return Adopted(runs=tuple(runs), inventory=adoption.inventory, hashes=adoption.hashes)


def _notes(left: LeftInstance, adoption: Adoption) -> Sequence[str]:
    return (
        *(
            f"plan {run.plan} was {run.status}: its run ended there, start it again"
            for run in left.runs
            if not run.is_over
        ),
        *(f"the next apply would replace pods: {one}" for one in adoption.differences),
        *adoption.notes,
    )
