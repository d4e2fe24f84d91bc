"""The library's client of an API server, with errors.

``kubernetes_asyncio`` 36.1 looks at the status of an answer only where it reads the content itself.
Its dynamic client reads it later, so a refusal (404, 422, …) comes back as if it were the object.
Reproduction: ``tests/unit/activities/kubernetes/test_cluster.py``. Upstream: pull request 402 of
tomplus/kubernetes_asyncio, which is merged and not in that release; with it this file is needless.
"""

import os
from pathlib import Path
from typing import Any, cast

from aiohttp import ClientResponse
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.client.rest import RESTResponse


class CheckedApiClient(ApiClient):
    """Raises ApiException for every answer whose status is not one of success."""

    async def request(self, *args: Any, **options: Any) -> Any:
        answer: Any = await super().request(*args, **options)
        if isinstance(answer, ClientResponse) and not answer.ok:
            whole: Any = RESTResponse(answer, await answer.read())
            raise ApiException(http_resp=whole)
        return answer


async def api_client(kubeconfig: Path | None = None, context: str | None = None) -> ApiClient:
    """Return a client as a kubeconfig says; without one as the service account of the pod that this
    process runs in, else as the machine's own (KUBECONFIG).

    Refreshed tokens are kept in memory: the file is not written. Raises ConfigException.
    """
    configuration = Configuration()
    if kubeconfig is None and context is None and _in_a_cluster():
        load = cast(Any, config.load_incluster_config)  # it has no types
        load(client_configuration=configuration)
        return CheckedApiClient(configuration)
    await config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None,
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
    return CheckedApiClient(configuration)


def _in_a_cluster() -> bool:
    """Kubernetes sets this variable in every container; KUBECONFIG is set there on purpose."""
    return "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
