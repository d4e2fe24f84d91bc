"""Messages between an Instance, steps of its plans, activities of its cluster, and clients."""

from enum import StrEnum

from pydantic import Field

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, WorkflowId
from temporal_plans.domain.values.refusal import Reason

OBJECTS_LIMIT = 10_000
"""Objects of an instance; the Instance carries their identities."""


def cluster_queue(cluster: str) -> str:
    """Return the task queue of the workers that have the credentials of a cluster."""
    return f"kubernetes/{cluster}"


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
    and ``uid``, which identifies this run of the plan in the annotations of objects."""

    package: InstalledPackage
    uid: str


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
    these. Refused when that run is over, so that nothing is applied by it any more. Idempotent."""

    plan: str
    uid: str
    objects: tuple[ObjectRef, ...] = Field(max_length=OBJECTS_LIMIT)


class PrepareInstallation(CompressibleValue):
    """Input of the activity ``prepare_installation``. ``kubernetes_version`` is the lowest version
    that the package works with, empty for any. ``namespace_manifest`` is the key of the template of
    the namespace, empty for a plain one; the namespace is created only with ``create_namespace``,
    and one that exists is never changed."""

    package: InstalledPackage
    kubernetes_version: str = Field(default="", max_length=300)
    namespace_manifest: str = Field(default="", max_length=4000)
    create_namespace: bool = False


class Preparation(CompactValue):
    """Result of ``prepare_installation``: the package can be installed when both are empty.

    ``problems`` do not pass by themselves; ``waits_for`` is why to ask again after a back-off.
    """

    problems: tuple[Reason, ...] = ()
    waits_for: str = Field(default="", max_length=2000)


NAMED_LIMIT = 200
"""Objects that the result of a removal names."""


class RemoveObjects(CompressibleValue):
    """Input of the activity ``remove_objects``: the end of an uninstall.

    ``inventory`` are all objects of the instance in the order of their first application. Claims
    that StatefulSets made are deleted only with ``volumes``. ``shown`` is the reason that is known:
    the activity answers when it has another one, or after a minute.
    """

    package: InstalledPackage
    inventory: tuple[ObjectRef, ...] = Field(default=(), max_length=OBJECTS_LIMIT)
    volumes: bool = False
    shown: str = ""


class RemovalResult(CompactValue):
    """Result of ``remove_objects``; never FAILED, for a deletion that is refused is not wrong.

    ``left`` is the number of objects that are to go and are still there, ``reason`` says why the
    first is, and ``about`` which. ``foreign`` are objects that belong to somebody else now and
    stay; ``claims`` are the claims that stay. Both are cut at ``NAMED_LIMIT``.
    """

    outcome: TasksOutcome
    left: int = 0
    reason: str = Field(default="", max_length=2000)
    about: ObjectRef | None = None
    foreign: tuple[ObjectRef, ...] = Field(default=(), max_length=NAMED_LIMIT)
    claims: tuple[ObjectRef, ...] = Field(default=(), max_length=NAMED_LIMIT)
