"""What an API server refused, and whether asking again can help.

The API server answers with a ``Status`` object; its message is the sentence for people. Asking
again helps when the answer depends on something that changes by itself or that operators change
beside the plan: conflicts, load, credentials, quotas, webhooks that are down. It does not help when
the object itself is wrong.
"""

import json
import re
from typing import Any, cast

import aiohttp
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.dynamic.exceptions import ResourceNotFoundError

from temporal_plans.domain.packages.inventory import ObjectRef

_NOT_FOUND = 404

_WRONG = frozenset({400, 403, 404, 405, 409, 413, 415, 422})
"""Bad request, forbidden, no such namespace, no such verb, too large, not this type, invalid."""

_CONFLICTS = frozenset({"Conflict", "AlreadyExists"})

_PASSING = (
    "exceeded quota",
    "status unknown for quota",
    "is being terminated",
    "failed calling webhook",
    "error looking up service account",
)
"""Parts of messages of refusals that end by themselves, or by what operators do in the cluster. A
new namespace has its service account when a controller has made it, and a quota its use."""

_DUPLICATE = "duplicate entries for key"
"""Lists whose entries have keys are merged by them; of equal ones the server can keep none."""

_UNREADABLE = (_DUPLICATE, "failed to create typed patch object", "failed to convert new object")
"""Parts of messages about objects that are wrong, which the server gives the status 500."""

_IMMUTABLE = "field is immutable"

_LONG_VALUE = re.compile(rf"(Invalid value: .{{60}}).*?: (?={_IMMUTABLE})", re.DOTALL)
"""The server prints all of a value that can't be changed, such as the template of pods."""

_GO_VALUE = re.compile(r"got &value\..*", re.DOTALL)
"""The server prints the value in place of which it expected another type, as Go does."""

ANSWERS = (
    ApiException,
    ResourceNotFoundError,
    ConfigException,
    aiohttp.ClientError,
    json.JSONDecodeError,
    TimeoutError,
)
"""What a connection and a request to an API server raise."""


class ClusterError(Exception):
    """A request to a cluster failed; the text names the object, and why.

    ``passing`` is whether the same request may succeed later. ``status`` is the HTTP status, None
    where no server answered. ``unserved``: the cluster has no such kind, or no longer. ``about`` is
    the object, where the caller knows it.
    """

    def __init__(
        self, message: str, *, passing: bool, status: int | None = None, unserved: bool = False
    ) -> None:
        super().__init__(message)
        self.passing = passing
        self.status = status
        self.unserved = unserved
        self.about: ObjectRef | None = None

    @property
    def immutable(self) -> bool:
        """Whether the request would change a field that can't be changed."""
        return self.status == 422 and _IMMUTABLE in str(self)


def cluster_error(subject: str, error: BaseException) -> ClusterError:
    """Return what one of ``ANSWERS`` means for a request about ``subject`` (``ConfigMap web``)."""
    match error:
        case ResourceNotFoundError():
            return _unserved(subject)
        case ConfigException():
            return ClusterError(f"{subject}: can't be used: {error}", passing=True)
        case ApiException():
            return _of_answer(subject, error)
        case json.JSONDecodeError():
            text = f"{subject}: the answer of the API server can't be read: {error}"
            return ClusterError(text, passing=True)
        case TimeoutError():
            return ClusterError(f"{subject}: the API server did not answer in time", passing=True)
        case _:
            return ClusterError(
                f"{subject}: the API server can't be reached: {error}", passing=True
            )


def _of_answer(subject: str, error: ApiException) -> ClusterError:
    if error.status == _NOT_FOUND and not _is_status(error):
        return _unserved(subject)  # the server has no such path
    reason, message = _said(error)
    status = error.status or 0
    if _DUPLICATE in message:
        message = f"{message}; keep one of the entries with the same key in the template"
    wrong = status in _WRONG or any(part in message for part in _UNREADABLE)
    passing = not wrong or reason in _CONFLICTS or any(part in message for part in _PASSING)
    return ClusterError(f"{subject}: {message} ({status})", passing=passing, status=status)


def _unserved(subject: str) -> ClusterError:
    text = f"{subject}: the cluster has no such kind"
    return ClusterError(text, passing=False, status=_NOT_FOUND, unserved=True)


def _is_status(error: ApiException) -> bool:
    return _status(error) is not None


def _status(error: ApiException) -> dict[str, Any] | None:
    """The Status object; None for another answer, as of a proxy."""
    try:
        status: Any = json.loads(error.body or b"")
    except ValueError:
        return None
    return cast(dict[str, Any], status) if isinstance(status, dict) else None


def _said(error: ApiException) -> tuple[str, str]:
    """The reason and the message of the Status object."""
    said = _status(error)
    if said is None:
        return "", str(error.reason or "no reason given")
    message = str(said.get("message") or error.reason)
    message = _GO_VALUE.sub("got a value of another type", message)
    return str(said.get("reason") or ""), _LONG_VALUE.sub(r"\1...: ", message)
