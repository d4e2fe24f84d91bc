"""Admission webhooks, served by the test."""

import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trustme
from aiohttp import web

from kubernetes.cluster_client import Object
from kubernetes.namespaces import Namespace
from temporal_plans.worker.ports import free_port


@asynccontextmanager
async def refusing_webhook(namespace: Namespace, resources: str) -> AsyncGenerator[Object]:
    """Run a webhook that keeps ``resources`` of a namespace from changes; the value is its
    configuration."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def refuse(request: web.Request) -> web.Response:
        review = await request.json()
        status = {"message": "they are forbidden on Sundays", "code": 403}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        return web.json_response({**review, "response": response})

    application = web.Application()
    application.router.add_post("/", refuse)
    runner = web.AppRunner(application)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resources],
        }
    ]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}}
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    configuration: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace.name},
        "webhooks": [
            {
                "name": "sundays.tests.example",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
                "rules": rules,
                "namespaceSelector": selector,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
            }
        ],
    }
    try:
        yield configuration
    finally:
        await runner.cleanup()
        kind = "ValidatingWebhookConfiguration"
        await namespace.cluster.delete(configuration["apiVersion"], kind, namespace.name)
