"""Which refusals of an API server may pass, and how they read."""

import json

import aiohttp
import pytest
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.config import ConfigException
from kubernetes_asyncio.dynamic.exceptions import ResourceNotFoundError

from temporal_plans.activities.kubernetes.errors import cluster_error


def _answer(status: int, reason: str, message: str) -> ApiException:
    error = ApiException(status=status, reason="as HTTP says")
    error.body = json.dumps({"kind": "Status", "reason": reason, "message": message}).encode()
    return error


def _page(status: int, body: bytes | None) -> ApiException:
    error = ApiException(status=status, reason="Bad Gateway")
    error.body = body
    return error


@pytest.mark.parametrize(
    ("error", "passing", "text"),
    [
        pytest.param(
            _answer(422, "Invalid", "spec.replicas: must be positive"),
            False,
            "Job it: spec.replicas: must be positive (422)",
            id="invalid",
        ),
        pytest.param(_answer(400, "BadRequest", "no"), False, "Job it: no (400)", id="bad"),
        pytest.param(
            _answer(403, "Forbidden", "no role"), False, "Job it: no role (403)", id="role"
        ),
        pytest.param(
            _answer(403, "Forbidden", "exceeded quota: pods"),
            True,
            "Job it: exceeded quota: pods (403)",
            id="quota",
        ),
        pytest.param(
            _answer(403, "Forbidden", "status unknown for quota: full"),
            True,
            "Job it: status unknown for quota: full (403)",
            id="new-quota",
        ),
        pytest.param(
            _answer(403, "Forbidden", "error looking up service account a/default: not found"),
            True,
            "Job it: error looking up service account a/default: not found (403)",
            id="namespace-begins",
        ),
        pytest.param(
            _answer(403, "Forbidden", "namespace a is being terminated"),
            True,
            "Job it: namespace a is being terminated (403)",
            id="namespace-ends",
        ),
        pytest.param(
            _answer(404, "NotFound", "no namespace"), False, "Job it: no namespace (404)", id="none"
        ),
        pytest.param(_answer(409, "Conflict", "changed"), True, "Job it: changed (409)", id="race"),
        pytest.param(_answer(401, "Unauthorized", "who"), True, "Job it: who (401)", id="expired"),
        pytest.param(
            _answer(429, "TooManyRequests", "slow"), True, "Job it: slow (429)", id="load"
        ),
        pytest.param(
            _answer(500, "InternalError", "x: duplicate entries for key [name=a]"),
            False,
            "Job it: x: duplicate entries for key [name=a]; keep one of the entries with the same "
            "key in the template (500)",
            id="duplicates",
        ),
        pytest.param(
            _answer(500, "InternalError", "failed to convert new object: illegal base64"),
            False,
            "Job it: failed to convert new object: illegal base64 (500)",
            id="unreadable",
        ),
        pytest.param(
            _answer(422, "Invalid", f"s: Invalid value: {'x' * 2000}: field is immutable"),
            False,
            f"Job it: s: Invalid value: {'x' * 60}...: field is immutable (422)",
            id="immutable",
        ),
        pytest.param(
            ConfigException("no such context"),
            True,
            "Job it: can't be used: no such context",
            id="kubeconfig",
        ),
        pytest.param(
            _answer(500, "InternalError", "failed calling webhook x"),
            True,
            "Job it: failed calling webhook x (500)",
            id="webhook",
        ),
        pytest.param(
            _answer(500, "InternalError", 'x: expected string, got &value.value{"a":"content"}'),
            True,
            "Job it: x: expected string, got a value of another type (500)",
            id="printed-value",
        ),
        pytest.param(
            _page(404, b"404 page not found"),
            False,
            "Job it: the cluster has no such kind",
            id="no-path",
        ),
        pytest.param(_page(502, b"<html>"), True, "Job it: Bad Gateway (502)", id="proxy"),
        pytest.param(_page(403, None), False, "Job it: Bad Gateway (403)", id="nothing-said"),
        pytest.param(_page(503, b"[]"), True, "Job it: Bad Gateway (503)", id="no-status"),
        pytest.param(
            ResourceNotFoundError("x"), False, "Job it: the cluster has no such kind", id="kind"
        ),
        pytest.param(
            aiohttp.ClientError("refused"),
            True,
            "Job it: the API server can't be reached: refused",
            id="unreachable",
        ),
        pytest.param(
            json.JSONDecodeError("Unterminated string", '{"a', 1),
            True,
            "Job it: the answer of the API server can't be read: Unterminated string: line 1 "
            "column 2 (char 1)",
            id="cut",
        ),
        pytest.param(
            TimeoutError(),
            True,
            "Job it: the API server did not answer in time",
            id="timeout",
        ),
    ],
)
def test_an_error_says_whether_it_may_pass(error: Exception, passing: bool, text: str) -> None:
    found = cluster_error("Job it", error)
    assert (found.passing, str(found)) == (passing, text)


@pytest.mark.parametrize(
    ("status", "message", "immutable"),
    [
        (422, "spec.template: field is immutable", True),
        (422, "spec.template: is wrong", False),
        (409, "field is immutable", False),
    ],
)
def test_a_field_that_can_not_be_changed(status: int, message: str, immutable: bool) -> None:
    assert cluster_error("Job it", _answer(status, "Invalid", message)).immutable is immutable
