"""A connection to one Kubernetes cluster: apply, get and delete objects of any kind.

Objects are plain dicts, as they were rendered and as the server returns them: no typed model drops
a field that it does not know. All methods raise ``ClusterError``.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import aiohttp
from kubernetes_asyncio.client import ApiClient, VersionApi
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.dynamic import DynamicClient
from kubernetes_asyncio.dynamic.exceptions import ResourceNotFoundError

from temporal_plans.activities.kubernetes.api_client import api_client
from temporal_plans.activities.kubernetes.errors import ANSWERS, ClusterError, cluster_error
from temporal_plans.activities.kubernetes.pod_command import Container, Executed, execute
from temporal_plans.domain.packages.object_names import object_name_fault

FIELD_MANAGER = "temporal-plans"
"""The one owner of all fields that plans apply: what a plan no longer sends, the server removes."""

REQUEST_TIMEOUT = 30.0
"""Seconds that a request may take."""

COMMAND_TIMEOUT = 60.0
"""Seconds that a command in a pod may take."""

_UNAUTHORIZED = 401
_NOT_FOUND = 404
_UNAVAILABLE = 503
_NOT_OF_SERVER = "something before it answered that there is no such path (404)"

LIST_LIMIT = 500
"""Objects of one list."""

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
        async with self._kind(manifest) as resource:
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
        also when the cluster has no such kind, and for a name that no object can have."""
        if _name_fault(manifest):
            return None
        try:
            async with self._kind(manifest) as resource:
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

    async def create(self, manifest: Manifest) -> bool:
        """Create the object, and return whether it was created: one that exists is not changed."""
        try:
            async with self._kind(manifest) as resource:
                await resource.create(
                    body=dict(manifest),
                    namespace=_namespace(manifest),
                    field_manager=FIELD_MANAGER,
                    _request_timeout=REQUEST_TIMEOUT,
                )
        except ClusterError as error:
            if error.status == 409 and await self.get(manifest) is not None:
                return False
            raise
        return True

    async def merge(
        self, manifest: Manifest, change: Manifest, *, manager: str = FIELD_MANAGER
    ) -> Object:
        """Change some fields of an object that exists (JSON merge patch), and return it. With the
        ``resourceVersion`` of a look, the change is refused when there was another since.
        ``manager`` owns the fields then."""
        async with self._kind(manifest) as resource:
            answer = await resource.patch(
                body=dict(change),
                name=_name(manifest),
                namespace=_namespace(manifest),
                content_type="application/merge-patch+json",
                field_manager=manager,
                _request_timeout=REQUEST_TIMEOUT,
                serializer=_plain,
            )
            return cast(Object, answer)

    async def find(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = LIST_LIMIT,
    ) -> list[Object]:
        """Return at most ``limit`` objects of a kind in a namespace (in all without one) that the
        selectors select; none when the cluster has no such kind."""
        try:
            like = {"apiVersion": api_version, "kind": kind}
            async with self._kind(like, kind) as resource:
                answer: Any = await resource.get(
                    namespace=namespace,
                    label_selector=labels,
                    field_selector=fields,
                    limit=limit,
                    _request_timeout=REQUEST_TIMEOUT,
                    serializer=_plain,
                )
                kinds = {"apiVersion": api_version, "kind": kind}
                items: list[Object] = answer["items"] or []
                return [{**kinds, **one} for one in items]
        except ClusterError as error:
            if _is_absent(error):
                return []
            raise

    async def kinds(self) -> list[tuple[str, str, bool]]:
        """Return all kinds of objects that can be listed, each once in the version of its API that
        the server prefers: its apiVersion, its name, and whether its objects are in namespaces.
        A group whose server does not answer is left out."""
        with self._errors("cluster"):
            groups = (await self._read("/apis"))["groups"]
            found = await self._listable("v1", "/api/v1")
            for group in groups:
                version = group["preferredVersion"]["groupVersion"]
                try:
                    found += await self._listable(version, f"/apis/{version}")
                except ApiException as error:
                    if error.status != _UNAVAILABLE:
                        raise
            return found

    async def _listable(self, version: str, path: str) -> list[tuple[str, str, bool]]:
        resources = (await self._read(path))["resources"]
        return [
            (version, str(one["kind"]), bool(one["namespaced"]))
            for one in resources
            if "list" in one["verbs"] and "/" not in one["name"]
        ]

    async def _read(self, path: str) -> Object:
        answer: Any = await self._dynamic.request(
            "get", path, serializer=_plain, _request_timeout=REQUEST_TIMEOUT
        )
        return cast(Object, answer)

    async def version(self) -> str:
        """Return the version of the API server: ``v1.36.3``."""
        with self._errors("cluster"):
            api = VersionApi(self._dynamic.client)
            answer = await api.get_code(_request_timeout=REQUEST_TIMEOUT)
            return str(answer.git_version)

    async def list_metadata(self, like: Manifest, *, limit: int) -> tuple[list[Object], bool]:
        """Return the metadata of objects of the manifest's kind, in its namespace if it has one: at
        most ``limit``, and whether these are all."""
        async with self._kind(like, like["kind"]) as resource:
            answer: Any = await resource.get(
                namespace=_namespace(like),
                limit=limit,
                header_params={"Accept": _METADATA_ONLY},
                _request_timeout=REQUEST_TIMEOUT,
                serializer=_plain,
            )
            complete = not answer["metadata"].get("continue")
            return cast(list[Object], answer["items"] or []), complete

    async def delete(self, manifest: Manifest, *, uid: str = "") -> bool:
        """Order the deletion of the object after all that it owns; return whether there was one.

        The object is there until its finalizers are done: ``get`` shows when it is gone. With
        ``uid`` only that object is deleted, not a later one of its name.
        """
        # In the body: the server reads no options of the query beside one, and its default leaves
        # the pods of Jobs.
        if _name_fault(manifest):
            return False
        options: dict[str, Any] = {"propagationPolicy": "Foreground"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            async with self._kind(manifest) as resource:
                await resource.delete(
                    name=_name(manifest),
                    namespace=_namespace(manifest),
                    body=options,
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
            async with self._kind(manifest) as resource:
                pass
        except ClusterError as error:
            if _is_absent(error):
                return None
            raise
        return bool(resource.namespaced)

    async def replace_managers(self, live: Manifest, managers: Sequence[Manifest]) -> Object:
        """Replace ``metadata.managedFields`` of an object, unless it has changed since ``live``."""
        version = live["metadata"]["resourceVersion"]
        change = {"managedFields": [dict(one) for one in managers], "resourceVersion": version}
        return await self.merge(live, {"metadata": change})

    async def execute(
        self,
        container: Container,
        command: Sequence[str],
        *,
        limit: int,
        timeout: float = COMMAND_TIMEOUT,
    ) -> Executed:
        """Run a command in a container to its end. ``limit``: bytes that it may print."""
        with self._errors(str(container)):
            return await execute(
                self._dynamic.configuration, container, command, limit=limit, timeout=timeout
            )

    async def _resource(self, manifest: Manifest) -> Any:
        """The definition of a kind that is unknown may be younger than the last look."""
        key = manifest["apiVersion"], manifest["kind"]
        if key not in self._kinds:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                self._kinds[key] = await self._discovered(*key)
        return self._kinds[key]

    async def _discovered(self, version: str, kind: str) -> Any:
        try:
            return await self._dynamic.resources.get(api_version=version, kind=kind)
        except ResourceNotFoundError:
            await self._dynamic.resources.invalidate_cache()
            return await self._dynamic.resources.get(api_version=version, kind=kind)

    @asynccontextmanager
    async def _kind(self, manifest: Manifest, subject: str = "") -> AsyncGenerator[Any, None]:
        """Find the kind of a manifest, for a request about it (by default about the object)."""
        if fault := _name_fault(manifest):
            raise ClusterError(f"{subject or _subject(manifest)}: {fault}", passing=False)
        try:
            with self._errors(subject or _subject(manifest)):
                yield await self._resource(manifest)
        except ClusterError as error:
            if error.unserved and isinstance(error.__cause__, ApiException):
                with self._errors(subject or _subject(manifest)):
                    await self._check_unserved(manifest)
            raise

    async def _check_unserved(self, manifest: Manifest) -> None:
        """Raise when a kind is served, although a request was answered as if it were not: that
        answer was not the API server's. Its definition may also have been deleted."""
        self._kinds.pop((manifest["apiVersion"], manifest["kind"]), None)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                await self._dynamic.resources.invalidate_cache()
            await self._resource(manifest)
        except ResourceNotFoundError:
            return
        except ApiException as error:
            if error.status != _NOT_FOUND:
                raise
        raise aiohttp.ClientError(_NOT_OF_SERVER)

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
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    timeout: float = REQUEST_TIMEOUT,
) -> AsyncGenerator[Cluster, None]:
    """Connect as a kubeconfig says; without one as the pod's service account, or as the machine's
    own (KUBECONFIG). Raises ClusterError, also when that takes longer than ``timeout`` seconds."""
    # The library keeps what it discovers in a file of the machine's temporary folder, which other
    # users of the machine could write.
    with TemporaryDirectory(prefix="temporal-plans-") as folder:
        with _errors("credentials"):  # a program of the kubeconfig may provide them
            api = await api_client(kubeconfig, context)
        async with api:
            with _errors("cluster"):  # the library would wait for minutes
                async with asyncio.timeout(timeout):
                    dynamic = await _discovering(api, Path(folder) / "kinds.json")
            yield Cluster(dynamic)


async def _discovering(api: ApiClient, file: Path) -> DynamicClient:
    try:
        dynamic: DynamicClient = await DynamicClient(api, cache_file=str(file))
    except ApiException as error:
        if error.status == _NOT_FOUND:  # every API server has these paths
            raise aiohttp.ClientError(_NOT_OF_SERVER) from error
        raise
    return dynamic


@contextmanager
def _errors(subject: str) -> Generator[None, None, None]:
    try:
        yield
    except ANSWERS as error:
        raise cluster_error(subject, error) from error


def _plain(client: DynamicClient, answer: Object) -> Object:
    """Answers as they are: the library would make attributes of all their fields."""
    return answer


def _name_fault(manifest: Manifest) -> str | None:
    """Return why a request about an object must not be sent; None when it may."""
    metadata = cast(Manifest, manifest.get("metadata") or {})
    given = [str(metadata[key]) for key in ("name", "namespace") if metadata.get(key)]
    return next((fault for name in given if (fault := object_name_fault(name))), None)


def _is_absent(error: ClusterError) -> bool:
    return error.status == _NOT_FOUND


def _subject(manifest: Manifest) -> str:
    return f"{manifest['kind']} {_name(manifest)}"


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _namespace(manifest: Manifest) -> str | None:
    return cast(str | None, manifest["metadata"].get("namespace"))
