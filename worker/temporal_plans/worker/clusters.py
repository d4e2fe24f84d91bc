"""The clusters that the workers of a process reach, each on a queue of its own."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from temporalio.client import Client
from temporalio.worker import WorkerConfig

from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.mechanics.secrets import SecretLookup, SecretProvider
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.messages.addresses import cluster_queue

if TYPE_CHECKING:  # the extra ``kubernetes`` may be missing
    from temporal_plans.activities.kubernetes.connection import ClusterConnection
    from temporal_plans.activities.packages.tasks.execution import TaskKind

_ANY_CLUSTER = cluster_queue("")


class ClusterSettingError(UserFacingError, ValueError):
    """A process can't serve a cluster as it was started."""

    usage = True


class ServedClusters:
    """Clusters by their queues. Raises ClusterSettingError for a cluster twice, for a kind of tasks
    that is built in, and without the extra ``kubernetes``."""

    def __init__(
        self,
        clusters: Sequence[ClusterAccess],
        secrets: Sequence[SecretProvider],
        kinds: "Mapping[str, TaskKind]",
    ) -> None:
        self._secrets = SecretLookup(secrets)
        self._kinds = kinds
        self._connections: dict[str, ClusterConnection] = {}
        if clusters or kinds:
            _check(clusters, kinds)
        for access in clusters:
            self._connections[cluster_queue(access.name)] = _connection(access)

    def serves(self, task_queue: str) -> bool:
        """Return whether a worker on this queue is one of a cluster. Raises ClusterSettingError for
        a cluster whose credentials are not there."""
        if task_queue.startswith(_ANY_CLUSTER) and task_queue not in self._connections:
            name = task_queue.removeprefix(_ANY_CLUSTER)
            raise ClusterSettingError(f"clusters: no {name!r}; give PlansPlugin its ClusterAccess")
        return task_queue in self._connections

    def connection(self, task_queue: str) -> "ClusterConnection":
        """Return the connection of the worker on this queue, for ``async with``."""
        return self._connections[task_queue]

    def configure(self, config: WorkerConfig) -> WorkerConfig:
        """Return the settings of the worker of a cluster with its activities."""
        client = config.get("client")
        if client is not None:
            connection = self._connections[config.get("task_queue", "")]
            own = cluster_activities(client, connection, self._secrets, self._kinds)
            config["activities"] = [*config.get("activities", []), *own]
        return config


def cluster_activities(
    client: Client,
    connection: "ClusterConnection",
    secrets: SecretLookup,
    kinds: "Mapping[str, TaskKind]",
) -> list[Callable[..., Any]]:
    """Return the activities of a cluster's queue: those that need its credentials."""
    from temporal_plans.activities.packages.installation import InstallationActivities
    from temporal_plans.activities.packages.observation import ObservationActivities
    from temporal_plans.activities.packages.package_cache import PackageCache
    from temporal_plans.activities.packages.package_tasks import PackageTaskActivities
    from temporal_plans.activities.packages.preview import PreviewActivities
    from temporal_plans.activities.packages.removal import RemovalActivities
    from temporal_plans.activities.packages.service_removal import ServiceRemovalActivities
    from temporal_plans.activities.packages.takeover import TakeoverActivities
    from temporal_plans.activities.packages.tasks.pipe import pipe_kind

    load = PackageCache(content_store(client)).get
    own: Mapping[str, TaskKind] = {"Pipe": pipe_kind(os.environ)}
    tasks = PackageTaskActivities(client, load, connection, secrets, {**kinds, **own})
    installation = InstallationActivities(connection.use, load)
    removal = RemovalActivities(client, connection.use)
    observation = ObservationActivities(client, connection.use, secrets)
    takeover = TakeoverActivities(client, connection.use, load)
    preview = PreviewActivities(client, load, connection.use, secrets)
    return [
        tasks.run_package_tasks,
        installation.prepare_installation,
        ServiceRemovalActivities(client).remove_services,
        removal.remove_instance,
        observation.look_at_objects,
        takeover.ask_cluster,
        preview.preview_objects,
    ]


def _connection(access: ClusterAccess) -> "ClusterConnection":
    from temporal_plans.activities.kubernetes.connection import ClusterConnection

    return ClusterConnection(access)


def _check(clusters: Sequence[ClusterAccess], kinds: "Mapping[str, TaskKind]") -> None:
    names = [access.name for access in clusters]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise ClusterSettingError(f"clusters: {', '.join(sorted(repeated))} twice; write it once")
    try:
        from temporal_plans.activities.packages.tasks import TASK_KINDS
    except ImportError as error:
        fix = "pip install 'temporal-plans[kubernetes]'"
        raise ClusterSettingError(f"clusters: needs the package {error.name}; {fix}") from error
    if built_in := sorted(TASK_KINDS.keys() & kinds.keys()):
        raise ClusterSettingError(
            f"task_kinds: {', '.join(built_in)} is built in; choose another name"
        )
    for name, kind in kinds.items():
        if not callable(kind):
            raise ClusterSettingError(f"task_kinds: {name} is not a function (found {kind!r})")
