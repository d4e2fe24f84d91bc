"""Messages between an Instance, steps of its plans, activities of its cluster, and clients."""

from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from temporal_plans.domain.packages.changes import Change, ChangeRequest
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.dependencies import KeptHash
from temporal_plans.domain.packages.installation import Installation
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.left_instances import Adoption, LeftInstance, LeftPackage
from temporal_plans.domain.packages.object_preview import ObjectPreview, PreviewAction
from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.domain.packages.readiness import Readiness
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Name, WorkflowId
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.owners import DeployAnswer, OwnerState, OwnerStatus

OBJECTS_LIMIT = 10_000
"""Objects of an instance; the Instance carries their identities."""


SERVICES_LIMIT = 100
"""Services of nested packages that an instance may have."""


class InstalledPackage(CompressibleValue):
    """A package as an Instance has installed it, for the activities of its cluster.

    ``service`` is the name of the service, ``instance`` that of the instance in templates and
    labels. ``content`` is the digest of the package's archive in the content store. ``given`` are
    texts of parameters by name; ``secrets`` are references by the name of the parameter, whose
    values only the worker of the cluster can look up.
    """

    service: str
    instance: str
    cluster: str
    namespace: str
    content: str = Field(pattern=r"^[0-9a-f]{64}$")
    given: dict[str, str] = {}
    secrets: dict[str, str] = {}


class PackageRun(CompactValue):
    """The owner's part in the context of an instance's plan (``OwnerContext.part``): the package,
    ``uid``, which identifies this run of the plan in the annotations of objects, and what has to be
    so before a step begins, as in PrepareInstallation. ``hashes`` are those that a former
    controller wrote. ``installation`` is the first run id of the Instance, empty in runs of earlier
    versions."""

    package: InstalledPackage
    uid: str
    kubernetes_version: str = Field(default="", max_length=300)
    namespace_manifest: str = Field(default="", max_length=4000)
    create_namespace: bool = False
    hashes: tuple[KeptHash, ...] = ()
    installation: str = ""


class TasksInput(CompressibleValue):
    """Input of the activity ``run_package_tasks``, on the queue of the package's cluster.

    ``owner`` is the workflow id of the Instance. ``run`` is that of the plan, ``arguments`` are
    values of parameters for this run only. ``tasks`` are the names of the tasks that are not done.
    ``attempt`` identifies the step's run until its next restart: what was made for it is not made
    again. ``shown`` is the reason that the step shows: the activity answers when it has another
    one, or after a minute.
    """

    owner: WorkflowId
    run: PackageRun
    plan: str
    phase: str
    step: str
    tasks: tuple[str, ...]
    arguments: dict[str, str] = {}
    attempt: str = ""
    shown: str = ""


class TasksOutcome(StrEnum):
    """``DONE``: all tasks are. ``WAITING``: ask again at once, what was applied is not healthy yet.
    ``RETRY``: an error that may pass, ask again after the back-off. ``FAILED``: it will not pass by
    itself."""

    DONE = "done"
    WAITING = "waiting"
    RETRY = "retry"
    FAILED = "failed"


class TasksResult(CompressibleValue):
    """Result of ``run_package_tasks``: the names of tasks that are done now, and why the others are
    not, in words, with the object in question."""

    outcome: TasksOutcome
    done: tuple[str, ...] = ()
    reason: str = Field(default="", max_length=2000)
    about: ObjectRef | None = None


class RecordObjects(CompressibleValue):
    """Argument of the Instance's update ``record_objects``: a run of a plan is about to apply
    these, and to deploy the ``services`` of nested packages; it has deleted those that are
    ``gone``. Refused when that run is over, so that nothing is applied by it any more. Idempotent.
    """

    plan: str
    uid: str
    objects: tuple[ObjectRef, ...] = Field(max_length=OBJECTS_LIMIT)
    services: tuple[Name, ...] = Field(default=(), max_length=SERVICES_LIMIT)
    gone: tuple[ObjectRef, ...] = Field(default=(), max_length=OBJECTS_LIMIT)


class PrepareInstallation(CompressibleValue):
    """Input of the activity ``prepare_installation``. ``kubernetes_version`` is the lowest version
    that the package works with, empty for any. ``namespace_manifest`` is the key of the template of
    the namespace, empty for a plain one; the namespace is created only with ``create_namespace``,
    and one that exists is never changed. ``installation`` as in PackageRun."""

    package: InstalledPackage
    kubernetes_version: str = Field(default="", max_length=300)
    namespace_manifest: str = Field(default="", max_length=4000)
    create_namespace: bool = False
    installation: str = ""


class Preparation(CompactValue):
    """Result of ``prepare_installation``: the package can be installed when both are empty.

    ``problems`` do not pass by themselves; ``waits_for`` is why to ask again after a back-off.
    """

    problems: tuple[Reason, ...] = ()
    waits_for: str = Field(default="", max_length=2000)


class Recorded(CompactValue):
    """Answer of ``record_objects``: the number of objects that the instance has now."""

    objects: int = 0


class RemovalInput(CompressibleValue):
    """Input of the activity ``remove_instance``, on the queue of the package's cluster: delete all
    objects that the Instance (``owner``) has recorded, and wait until they are gone. ``shown`` as
    in TasksInput; the result is a TasksResult."""

    owner: WorkflowId
    package: InstalledPackage
    volumes: bool = False
    shown: str = ""


LOOK_LIMIT = 200
"""Objects that one report has."""


class LookAtObjects(CompressibleValue):
    """Input of the activity ``look_at_objects``, on the queue of the package's cluster: look at
    ``objects``, or, without them, at those that the Instance (``owner``) has recorded, from the one
    with the number ``first`` on, at most ``LOOK_LIMIT``. With ``notable`` at all from there on, for
    about half a minute; the report has those that are not healthy or were changed by others."""

    owner: WorkflowId
    package: InstalledPackage
    objects: tuple[ObjectRef, ...] = Field(default=(), max_length=LOOK_LIMIT)
    first: int = Field(default=0, ge=0, le=OBJECTS_LIMIT)
    notable: bool = False


class ObjectsReport(CompressibleValue):
    """Result of ``look_at_objects``. ``total`` is the number of objects to look at, ``looked`` of
    those that were, ``following`` the number of the first that was not (None when all were).
    ``counts`` are by state, ``changed`` of those with fields that others have changed. ``problem``
    is why the cluster or the Instance did not answer: then the rest says nothing."""

    total: int = 0
    looked: int = 0
    following: int | None = None
    counts: dict[ObjectState, int] = {}
    changed: int = 0
    objects: tuple[ObjectReport, ...] = Field(default=(), max_length=LOOK_LIMIT)
    problem: str = Field(default="", max_length=2000)

    @property
    def ready(self) -> bool:
        """Whether all that was looked at and is there is healthy. Objects that are missing do not
        count: Jobs may have a time to live."""
        bad = (ObjectState.UNHEALTHY, ObjectState.FAILED, ObjectState.FOREIGN, ObjectState.UNKNOWN)
        return not self.problem and not any(self.counts.get(state) for state in bad)


PREVIEW_LIMIT, PREVIEW_FIELDS_LIMIT = 500, 2000
"""Objects of one preview, and fields of all of them."""


class PreviewObjects(CompressibleValue):
    """Input of the activity ``preview_objects``, on the queue of the package's cluster: what would
    ``plan`` change, if ``after`` were installed in the place of ``before`` (None at the first
    installation)."""

    before: InstalledPackage | None = None
    after: InstalledPackage
    plan: Name


class ObjectsPreview(CompressibleValue):
    """Result of ``preview_objects``: the objects of the plan in the order of its steps, those that
    do not change last where there are too many. ``counts`` are of all by action. ``notes`` name
    what can't be foreseen, ``problems`` what keeps templates from being rendered. ``problem`` is
    why there is no preview: then the rest says nothing."""

    objects: tuple[ObjectPreview, ...] = Field(default=(), max_length=PREVIEW_LIMIT)
    counts: dict[PreviewAction, int] = {}
    notes: tuple[str, ...] = Field(default=(), max_length=50)
    problems: tuple[str, ...] = Field(default=(), max_length=50)
    problem: str = Field(default="", max_length=2000)


class Observation(CompressibleValue):
    """What an Instance has seen of its objects: those that are notable, and when."""

    at: AwareDatetime
    report: ObjectsReport


# --- questions of clients to a cluster -----------------------------------------------------------

INSTANCES_LIMIT = 500
"""Instances that one answer has."""


class ClusterQuestion(CompressibleValue):
    """Input of the activity ``ask_cluster``, which clients start themselves: what a controller
    of packages left in a cluster.

    With ``package`` what that, being taken over, begins with; with ``version``, the name of an
    OperatorVersion in ``namespace``, that and its Operator; else all Instances, of the namespace if
    it is set.
    """

    cluster: Name
    namespace: Name = ""
    version: Name = ""
    package: InstalledPackage | None = None


class ClusterAnswer(CompressibleValue):
    """Answer to a ClusterQuestion. ``problem`` is why there is none. No object's content is in it,
    but for packages and given parameters."""

    instances: tuple[LeftInstance, ...] = Field(default=(), max_length=INSTANCES_LIMIT)
    package: LeftPackage | None = None
    adoption: Adoption | None = None
    problem: str = Field(default="", max_length=2000)


# --- messages between an Instance and clients ----------------------------------------------------

INSTANCE_HISTORY_LIMIT = 2000
"""History events after which an Instance continues as new."""


class AdoptedRun(CompactValue):
    """The newest run of a plan before the instance was taken over. ``at`` is its last change."""

    plan: Name
    uid: str = Field(default="", max_length=200)
    status: Status
    at: AwareDatetime | None = None


class Adopted(CompactValue):
    """What an instance that is taken over has already: the newest runs of its plans, its objects,
    and the hashes in templates of their pods."""

    runs: tuple[AdoptedRun, ...] = Field(default=(), max_length=2_000)
    inventory: tuple[ObjectRef, ...] = Field(default=(), max_length=OBJECTS_LIMIT)
    hashes: tuple[KeptHash, ...] = Field(default=(), max_length=OBJECTS_LIMIT)


class InstanceInput(CompressibleValue):
    """Input of the Instance workflow, and argument of its update ``deploy`` and query ``preview``.

    ``change`` is what is to be installed, or is to be different; ``parent`` is the service whose
    package this one is nested in, and that installs it, empty without one; ``by`` and ``reason``
    are kept with the configuration. With ``adopted`` it is in the cluster already: no plan starts
    at the installation. One that is installed refuses it. ``state`` is the engine's own, and so is
    ``history_limit``.
    """

    content: Literal["package"] = "package"
    name: Name
    change: ChangeRequest = ChangeRequest()
    parent: Name = ""
    backoff: Backoff = Backoff()
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)
    adopted: Adopted | None = None
    state: "InstanceState | None" = None
    history_limit: int = Field(default=INSTANCE_HISTORY_LIMIT, ge=50)


class InstanceState(CompactValue):
    """The state that an Instance carries over when it continues as new.

    ``uids`` are the ids of the newest runs of its plans, by plan; ``inventory`` are the objects
    that it has in its cluster, in the order in which they were first applied; ``hashes`` are those
    that a former controller wrote; ``services`` are those of nested packages, in the order of their
    installation; ``held`` are the digests that it holds in the content store; ``rejected`` are the
    reasons for which the newest configuration was refused; ``seen`` is what it saw of its objects
    last; ``volumes`` and ``force`` are those of the request to uninstall it.
    """

    owner: OwnerState = OwnerState()
    configs: tuple[PackageConfiguration, ...] = ()
    target: str = ""
    uids: dict[str, str] = {}
    inventory: tuple[ObjectRef, ...] = ()
    hashes: tuple[KeptHash, ...] = ()
    services: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    seen: Observation | None = None
    readiness: Readiness | None = None
    volumes: bool = False
    force: bool = False


class InstanceStatus(OwnerStatus):
    """Answer of the Instance's query ``status``. ``version`` is that of the package, as people read
    it; ``objects`` is the number of those that it has in its cluster; ``startable`` are the names
    of all plans that people may start; those that never ran have records with the run 0.
    ``parent`` and ``services`` are those of nested packages.
    ``seen`` is what was seen of its objects last, while no plan ran; ``uids`` are the ids of the
    newest runs by plan, as objects have them in their annotations."""

    content: Literal["package"]  # without a default, which would not be written
    package: str
    version: str
    instance: str
    cluster: str
    namespace: str
    objects: int = 0
    parent: str = ""
    services: tuple[str, ...] = ()
    startable: tuple[str, ...] = ()
    readiness: Readiness | None = None
    seen: Observation | None = None
    uids: dict[str, str] = {}


class PackageDeployResult(DeployAnswer):
    """Answer of the Instance's updates ``deploy`` and ``rollback``, with the change. When
    ``outcome.result`` is ``refused``, ``problems`` has every reason."""

    change: Change | None = None
    problems: tuple[Reason, ...] = ()


class PackagePreview(CompressibleValue):
    """Answer of the Instance's query ``preview``: the change that a deployment would make, or every
    reason why it would be refused. ``after`` is what would be installed."""

    change: Change | None = None
    problems: tuple[Reason, ...] = ()
    before: InstalledPackage | None = None
    after: InstalledPackage | None = None


class PackageConfigurations(CompressibleValue):
    """Answer of the Instance's query ``configurations``: those that it keeps, oldest first.
    ``target`` is the id of the one in force."""

    configurations: tuple[PackageConfiguration, ...] = ()
    target: str = ""


class Inventory(CompressibleValue):
    """Answer of the Instance's query ``inventory``: the objects that it has in its cluster, in the
    order in which they were first applied, and the services of nested packages."""

    package: InstalledPackage
    objects: tuple[ObjectRef, ...] = ()
    services: tuple[str, ...] = ()


class LookRequest(CompactValue):
    """Argument of the Instance's update ``look``: look now at the objects from the one with the
    number ``first`` on. The answer is an ObjectsReport."""

    first: int = Field(default=0, ge=0, le=OBJECTS_LIMIT)


def installed_package(name: str, installation: Installation) -> InstalledPackage:
    """Return what the activities of the cluster need of an installation."""
    return InstalledPackage(
        service=name,
        instance=installation.instance,
        cluster=installation.cluster,
        namespace=installation.namespace,
        content=installation.package.content,
        given=installation.given,
        secrets=installation.secrets,
    )
