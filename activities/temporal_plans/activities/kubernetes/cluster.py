"""A connection to one Kubernetes cluster: apply, get and delete objects of any kind.

Objects are plain dicts, as they were rendered and as the server returns them: no typed model drops
a field that it does not know. All methods raise ``ClusterError``.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from kubernetes_asyncio.dynamic import DynamicClient
from kubernetes_asyncio.dynamic.exceptions import ResourceNotFoundError

from temporal_plans.activities.kubernetes.api_client import api_client
from temporal_plans.activities.kubernetes.errors import ANSWERS, ClusterError, cluster_error

FIELD_MANAGER = "temporal-plans"
"""The one owner of all fields that plans apply: what a plan no longer sends, the server removes."""

REQUEST_TIMEOUT = 30.0
"""Seconds that a request may take."""

_UNAUTHORIZED = 401

_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Object = dict[str, Any]
Manifest = Mapping[str, Any]


class Cluster:
    """The objects of one cluster, as one user."""

    def __init__(self, dynamic: DynamicClient) -> None:
        self._dynamic = dynamic
        self._kinds: dict[tuple[str, str], Any] = {}
        self.expired = False
        """Whether an answer was that the credentials are not, or no longer, valid (401)."""

    async def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Object:
        """Make the object as the manifest says, and return it as it is then.

        Fields of other managers that the manifest sets are taken over; all others stay. With
        ``dry_run`` nothing is changed: the answer is what would be.
        """
        options = {"dry_run": "All"} if dry_run else {}
        with self._errors(_subject(manifest)):
            resource = await self._resource(manifest)
            answer = await resource.server_side_apply(
                body=dict(manifest),
                field_manager=FIELD_MANAGER,
                force_conflicts=True,
                _request_timeout=REQUEST_TIMEOUT,
                serializer=_plain,
                **options,
            )
            return cast(Object, answer)

    async def get(self, manifest: Manifest) -> Object | None:
        """Return the object that has the manifest's kind, name and namespace; None without one,
        also when the cluster has no such kind."""
        try:
            with self._errors(_subject(manifest)):
                resource = await self._resource(manifest)
                answer = await resource.get(
                    name=_name(manifest),
                    namespace=_namespace(manifest),
                    _request_timeout=REQUEST_TIMEOUT,
                    serializer=_plain,
                )
                return cast(Object, answer)
        except ClusterError as error:
            if _is_absent(error):
                return None
            raise

    async def list_metadata(self, like: Manifest, *, limit: int) -> tuple[list[Object], bool]:
        """Return the metadata of objects of the manifest's kind, in its namespace if it has one: at
        most ``limit``, and whether these are all."""
        with self._errors(f"{like['kind']}"):
            resource = await self._resource(like)
            answer: Any = await resource.get(
                namespace=_namespace(like),
                limit=limit,
                header_params={"Accept": _METADATA_ONLY},
                _request_timeout=REQUEST_TIMEOUT,
                serializer=_plain,
            )
            complete = not answer["metadata"].get("continue")
            return cast(list[Object], answer["items"]), complete

    async def delete(self, manifest: Manifest) -> bool:
        """Order the deletion of the object after all that it owns; return whether there was one.

        The object is there until its finalizers are done: ``get`` shows when it is gone.
        """
        try:
            with self._errors(_subject(manifest)):
                resource = await self._resource(manifest)
                await resource.delete(
                    name=_name(manifest),
                    namespace=_namespace(manifest),
                    propagation_policy="Foreground",
                    _request_timeout=REQUEST_TIMEOUT,
                )
        except ClusterError as error:
            if _is_absent(error):
                return False
            raise
        return True

    async def namespaced(self, manifest: Manifest) -> bool | None:
        """Return whether objects of the manifest's kind are in namespaces; None when the cluster
        has no such kind."""
        try:
            with self._errors(_subject(manifest)):
                resource = await self._resource(manifest)
        except ClusterError as error:
            if _is_absent(error):
                return None
            raise
        return bool(resource.namespaced)

    async def replace_managers(self, live: Manifest, managers: Sequence[Manifest]) -> Object:
        """Replace ``metadata.managedFields`` of an object, unless it has changed since ``live``."""
        version = live["metadata"]["resourceVersion"]
        change = {"managedFields": [dict(one) for one in managers], "resourceVersion": version}
        with self._errors(_subject(live)):
            resource = await self._resource(live)
            answer = await resource.patch(
                body={"metadata": change},
                name=_name(live),
                namespace=_namespace(live),
                content_type="application/merge-patch+json",
                field_manager=FIELD_MANAGER,
                _request_timeout=REQUEST_TIMEOUT,
                serializer=_plain,
            )
            return cast(Object, answer)

    async def _resource(self, manifest: Manifest) -> Any:
        """The definition of a kind that is unknown may be younger than the last look."""
        key = manifest["apiVersion"], manifest["kind"]
        if key not in self._kinds:
            wanted = {"api_version": key[0], "kind": key[1]}
            try:
                self._kinds[key] = await self._dynamic.resources.get(**wanted)
            except ResourceNotFoundError:
                await self._dynamic.resources.invalidate_cache()
                self._kinds[key] = await self._dynamic.resources.get(**wanted)
        return self._kinds[key]

    @contextmanager
    def _errors(self, subject: str) -> Generator[None, None, None]:
        try:
            with _errors(subject):
                yield
        except ClusterError as error:
            self.expired = self.expired or error.status == _UNAUTHORIZED
            raise


@asynccontextmanager
async def connected(
    kubeconfig: Path | None = None, context: str | None = None
) -> AsyncGenerator[Cluster, None]:
    """Connect as a kubeconfig says; without one as the pod's service account, or as the machine's
    own (KUBECONFIG). Raises ClusterError."""
    # The library keeps what it discovers in a file of the machine's temporary folder, which other
    # users of the machine could write.
    with TemporaryDirectory(prefix="temporal-plans-") as folder:
        with _errors("credentials"):
            api = await api_client(kubeconfig, context)
        async with api:
            with _errors("cluster"):
                dynamic = await DynamicClient(api, cache_file=str(Path(folder) / "kinds.json"))
            yield Cluster(dynamic)


@contextmanager
def _errors(subject: str) -> Generator[None, None, None]:
    try:
        yield
    except ANSWERS as error:
        raise cluster_error(subject, error) from error


def _plain(client: DynamicClient, answer: Object) -> Object:
    """Answers as they are: the library would make attributes of all their fields."""
    return answer


def _is_absent(error: ClusterError) -> bool:
    return error.status == 404 or isinstance(error.__cause__, ResourceNotFoundError)


def _subject(manifest: Manifest) -> str:
    return f"{manifest['kind']} {_name(manifest)}"


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _namespace(manifest: Manifest) -> str | None:
    return cast(str | None, manifest["metadata"].get("namespace"))
