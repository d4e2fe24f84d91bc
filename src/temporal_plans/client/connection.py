"""How every process finds its Temporal server: exactly as the ``temporal`` CLI does.

A setting given as a flag wins over the environment variable (``TEMPORAL_ADDRESS`` ...), which wins
over the profile (``TEMPORAL_PROFILE``) in the configuration file (``TEMPORAL_CONFIG_FILE``, else
the place where ``temporal config set`` writes). ``temporalio.envconfig`` reads the latter two.
"""

import asyncio
import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import (
    ClientConfigProfile,
    ClientConfigTLS,
    ClientConnectConfig,
    DataSource,
)
from temporalio.runtime import Runtime
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.domain.model import Value

DEFAULT_ADDRESS = "localhost:7233"
DEFAULT_NAMESPACE = "default"

_DISABLE_HOST_VERIFICATION = "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION"
_HOST_AND_PORT = re.compile(r"(?!.*://).+:\d{1,5}")


class ConnectionSettingsError(ValueError):
    """The settings of the connection contradict each other or name what is not there."""


class ServerUnreachableError(ConnectionError):
    """No Temporal server answers where the settings point. ``sent``: what was on its way."""

    def __init__(self, address: str, reason: str, *, sent: str = "") -> None:
        super().__init__(self._text(address, reason) + _doubt(sent))
        self.address = address

    @staticmethod
    def _text(address: str, reason: str) -> str:
        return (
            f"no Temporal server answers at {address}: {reason}. Start one on this machine with "
            "`temporal plan dev`, or say where yours is: --address HOST:PORT, the variable "
            "TEMPORAL_ADDRESS, or a profile of the temporal CLI (--profile)"
        )


class AnswerLostError(ServerUnreachableError):
    """The connection broke, or the server failed, before it had answered."""

    @staticmethod
    def _text(address: str, reason: str) -> str:
        return f"the Temporal server at {address} gave no answer: {reason}"


def _doubt(sent: str) -> str:
    return f". The {sent} may have been carried out; look before you give it again" if sent else ""


class NamespaceNotFoundError(LookupError):
    """The server answers, but has no such namespace."""

    def __init__(self, namespace: str, address: str) -> None:
        super().__init__(
            f"the Temporal server at {address} has no namespace {namespace!r}; say another with "
            "--namespace or TEMPORAL_NAMESPACE, or make it with `temporal operator namespace "
            f"create -n {namespace}`"
        )
        self.namespace = namespace


class Connection(Value):
    """What was said on the command line; a field that is absent is left to environment and profile.

    The fields are the global flags of the ``temporal`` CLI. ``tls`` False says no TLS although the
    profile or an API key asks for it. Certificates and keys are PEM, by path or as data.
    ``disable_host_verification`` is known in order to be refused: the Python SDK cannot do it.
    """

    address: str | None = None
    namespace: str | None = None
    profile: str | None = None
    config_file: Path | None = None
    api_key: SecretStr | None = None
    tls: bool | None = None
    tls_ca_path: Path | None = None
    tls_ca_data: str | None = None
    tls_cert_path: Path | None = None
    tls_cert_data: str | None = None
    tls_key_path: Path | None = None
    tls_key_data: SecretStr | None = None
    tls_server_name: str | None = None
    tls_disable_host_verification: bool = False
    grpc_meta: dict[str, str] = {}
    identity: str | None = None

    def resolve(self, environ: Mapping[str, str] | None = None) -> ClientConnectConfig:
        """The arguments for ``Client.connect``, from flags, environment and profile.

        ``environ`` is the process's own when absent. Raises ``ConnectionSettingsError``.
        """
        environ = os.environ if environ is None else environ
        self._check(environ)
        profile = self._over(self._profile(environ))
        try:
            config = profile.to_client_connect_config()
        except OSError as error:  # a certificate that cannot be read
            raise ConnectionSettingsError(f"TLS: {error.filename}: {error.strerror}") from error
        address = config.setdefault("target_host", DEFAULT_ADDRESS)
        config.setdefault("namespace", DEFAULT_NAMESPACE)
        if not _HOST_AND_PORT.fullmatch(address):
            raise ConnectionSettingsError(
                f"address: {address!r} is not HOST:PORT, as in {DEFAULT_ADDRESS}"
            )
        return config

    def _check(self, environ: Mapping[str, str]) -> None:
        for name in ("tls_ca", "tls_cert", "tls_key"):
            if getattr(self, f"{name}_path") and getattr(self, f"{name}_data"):
                flag = name.replace("_", "-")
                raise ConnectionSettingsError(f"give --{flag}-path or --{flag}-data, not both")
        if self.config_file and not self.config_file.is_file():  # else it would be read as empty
            raise ConnectionSettingsError(f"--config-file: {self.config_file} is not a file")
        asked = environ.get(_DISABLE_HOST_VERIFICATION, "").lower() in ("1", "true")
        if self.tls_disable_host_verification or asked:
            raise ConnectionSettingsError(
                "Temporal's Python SDK always verifies the server's certificate, so "
                f"--tls-disable-host-verification ({_DISABLE_HOST_VERIFICATION}) cannot be done; "
                "give the certificate's authority with --tls-ca-path and, if it is made out to "
                "another name, --tls-server-name"
            )

    def _profile(self, environ: Mapping[str, str]) -> ClientConfigProfile:
        try:
            return ClientConfigProfile.load(
                profile=self.profile,
                config_source=self.config_file,
                override_env_vars=dict(environ),
            )
        except RuntimeError as error:  # the bridge's ConfigError, which has no public name
            raise ConnectionSettingsError(f"Temporal's client configuration: {error}") from error

    def _over(self, profile: ClientConfigProfile) -> ClientConfigProfile:
        return dataclasses.replace(
            profile,
            address=self.address or profile.address,
            namespace=self.namespace or profile.namespace,
            api_key=self.api_key.get_secret_value() if self.api_key else profile.api_key,
            tls=self._tls_over(profile.tls),
            grpc_meta={**profile.grpc_meta, **self.grpc_meta},
        )

    def _tls_over(self, tls: ClientConfigTLS | None) -> ClientConfigTLS | None:
        key = self.tls_key_data.get_secret_value() if self.tls_key_data else None
        given: dict[str, DataSource | None] = {
            "server_root_ca_cert": self.tls_ca_path or self.tls_ca_data,
            "client_cert": self.tls_cert_path or self.tls_cert_data,
            "client_private_key": self.tls_key_path or key,
            "server_name": self.tls_server_name,
        }
        given = {name: value for name, value in given.items() if value}
        if self.tls is None and not given:
            return tls
        disabled = not self.tls if self.tls is not None else False
        return dataclasses.replace(tls or ClientConfigTLS(), disabled=disabled, **given)  # type: ignore[arg-type]


async def connect(
    connection: Connection | None = None,
    *,
    plugins: Sequence[Plugin] = (),
    runtime: Runtime | None = None,
    environ: Mapping[str, str] | None = None,
    deadline: timedelta = timedelta(seconds=10),
) -> Client:
    """A client that has reached its server.

    Values cross as pydantic JSON. ``plugins`` are the SDK's; what they bring applies to every
    worker made from this client. Raises ``ConnectionSettingsError`` for settings that make no
    sense, ``ServerUnreachableError`` when nothing answers within ``deadline``, and
    ``NamespaceNotFoundError``.
    """
    connection = connection or Connection()
    config = connection.resolve(environ)
    address = config.get("target_host", DEFAULT_ADDRESS)
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            client = await Client.connect(
                **config,
                data_converter=pydantic_data_converter,
                plugins=plugins,
                runtime=runtime,
                identity=connection.identity,
            )
            await _check_namespace(client, address)
            return client
    except TimeoutError as error:
        reason = f"nothing heard for {deadline.total_seconds():g} s"
        raise ServerUnreachableError(address, reason) from error
    except RuntimeError as error:  # all that the SDK says about a connection that fails
        raise ServerUnreachableError(address, _reason(str(error))) from error


async def _check_namespace(client: Client, address: str) -> None:
    """Some calls answer an unknown namespace as if a workflow were missing, so it is asked for.

    Whoever may not ask goes on: the calls to come say it, if it matters.
    """
    try:
        await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=client.namespace)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NamespaceNotFoundError(client.namespace, address) from error


_REASONS = (
    ("ConnectionRefused", "the connection was refused"),
    ("dns error", "there is no such host"),
    ("InvalidCertificate", "its certificate is not trusted (see --tls-ca-path, --tls-server-name)"),
    ("certificate", "TLS failed (see the --tls flags)"),
    ("Unauthenticated", "it does not know who we are (see --api-key and the --tls flags)"),
    ("PermissionDenied", "it does not let us in (see --api-key and --namespace)"),
)


def _reason(message: str) -> str:
    """The SDK's account of a failed connection in a few words; unknown ones as they are."""
    known = (reason for sign, reason in _REASONS if sign.lower() in message.lower())
    return next(known, message)


__all__ = [
    "DEFAULT_ADDRESS",
    "DEFAULT_NAMESPACE",
    "AnswerLostError",
    "Connection",
    "ConnectionSettingsError",
    "NamespaceNotFoundError",
    "ServerUnreachableError",
    "connect",
]
