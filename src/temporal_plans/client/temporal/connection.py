"""The connection of every process to its Temporal server, configured as the ``temporal`` CLI is.

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
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.domain.values.model import Value

DEFAULT_ADDRESS = "localhost:7233"
DEFAULT_NAMESPACE = "default"

_DISABLE_HOST_VERIFICATION = "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION"
_HOST_AND_PORT = re.compile(r"(?!.*://).+:\d{1,5}")


class ConnectionSettingsError(UserFacingError, ValueError):
    """The settings of the connection contradict each other, or name a file that does not exist."""

    usage = True


class ServerUnreachableError(UserFacingError, ConnectionError):
    """No Temporal server answers at the address. ``sent`` is the request that may have arrived."""

    def __init__(self, address: str, reason: str, *, sent: str = "") -> None:
        super().__init__(self._text(address, reason) + _sent_note(sent))
        self.address = address

    @staticmethod
    def _text(address: str, reason: str) -> str:
        return (
            f"no Temporal server answers at {address}: {reason}. Start one on this machine with "
            "`temporal plan dev`, or give the address of yours: --address HOST:PORT, the variable "
            "TEMPORAL_ADDRESS, or a profile of the temporal CLI (--profile)"
        )


class AnswerLostError(ServerUnreachableError):
    """The connection broke, or the server failed, before it answered."""

    @staticmethod
    def _text(address: str, reason: str) -> str:
        return f"the Temporal server at {address} gave no answer: {reason}"


def _sent_note(sent: str) -> str:
    return f". The {sent} may have been carried out; check before you repeat it" if sent else ""


class NamespaceNotFoundError(UserFacingError, LookupError):
    """The server answers, but has no such namespace."""

    def __init__(self, namespace: str, address: str) -> None:
        super().__init__(
            f"the Temporal server at {address} has no namespace {namespace!r}; choose another with "
            "--namespace or TEMPORAL_NAMESPACE, or create it with `temporal operator namespace "
            f"create -n {namespace}`"
        )
        self.namespace = namespace


class Connection(Value):
    """Connection settings, as given on the command line; environment and profile fill absent
    fields.

    The fields are the global flags of the ``temporal`` CLI. ``tls`` False switches TLS off even if
    the profile or an API key requires it. Certificates and keys are PEM, by path or as data.
    ``tls_disable_host_verification`` exists only to be refused: the Python SDK can't do it.
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
        """Return the arguments for ``Client.connect``, from flags, environment and profile.

        ``environ`` is by default the process's own. Raises ``ConnectionSettingsError``.
        """
        environ = os.environ if environ is None else environ
        self._check(environ)
        profile = self._override(self._profile(_meaningful(environ)))
        self._check_certificate(profile.tls)
        try:
            config = profile.to_client_connect_config()
        except OSError as error:  # a certificate that cannot be read
            raise ConnectionSettingsError(f"TLS: {error.filename}: {error.strerror}") from error
        address = config.setdefault("target_host", DEFAULT_ADDRESS)
        config.setdefault("namespace", DEFAULT_NAMESPACE)
        if not _HOST_AND_PORT.fullmatch(address):
            raise ConnectionSettingsError(
                f"address: not HOST:PORT (found {address!r}); write for example {DEFAULT_ADDRESS}"
            )
        return config

    def _check(self, environ: Mapping[str, str]) -> None:
        for name in ("tls_ca", "tls_cert", "tls_key"):
            if getattr(self, f"{name}_path") and getattr(self, f"{name}_data"):
                flag = name.replace("_", "-")
                raise ConnectionSettingsError(f"give --{flag}-path or --{flag}-data, not both")
        if self.config_file and not self.config_file.is_file():  # the SDK reads it as empty
            raise ConnectionSettingsError(f"--config-file: {self.config_file} is not a file")
        in_environment = environ.get(_DISABLE_HOST_VERIFICATION, "").lower() in ("1", "true")
        if self.tls_disable_host_verification or in_environment:
            raise ConnectionSettingsError(
                f"--tls-disable-host-verification ({_DISABLE_HOST_VERIFICATION}): not supported, "
                "because Temporal's Python SDK always verifies the server's certificate; give the "
                "certificate's authority with --tls-ca-path and, if it is issued to another name, "
                "--tls-server-name"
            )

    def _check_certificate(self, tls: ClientConfigTLS | None) -> None:
        if tls is None or tls.disabled or bool(tls.client_cert) == bool(tls.client_private_key):
            return
        given, missing = ("cert", "key") if tls.client_cert else ("key", "cert")
        raise ConnectionSettingsError(
            f"--tls-{missing}-path: a certificate needs its key, and a key its certificate (found "
            f"only --tls-{given}-path or --tls-{given}-data); give both"
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

    def _override(self, profile: ClientConfigProfile) -> ClientConfigProfile:
        return dataclasses.replace(
            profile,
            address=self.address or profile.address,
            namespace=self.namespace or profile.namespace,
            api_key=self.api_key.get_secret_value() if self.api_key else profile.api_key,
            tls=self._override_tls(profile.tls),
            grpc_meta={**profile.grpc_meta, **self.grpc_meta},
        )

    def _override_tls(self, tls: ClientConfigTLS | None) -> ClientConfigTLS | None:
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


def _meaningful(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the SDK: an empty one of Temporal's is as good as absent, and the
    SDK takes only UTF-8. Raises ConnectionSettingsError for a variable of Temporal's that is not.
    """
    found: dict[str, str] = {}
    for name, value in environ.items():
        known = name.startswith("TEMPORAL_")
        if _is_unicode(name + value):
            if value or not known:
                found[name] = value
        elif known:
            raise ConnectionSettingsError(f"{name}: not UTF-8; write the value in UTF-8")
    return found


def _is_unicode(text: str) -> bool:
    """Return whether a text of the operating system was UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def connect(
    connection: Connection | None = None,
    *,
    plugins: Sequence[Plugin] = (),
    runtime: Runtime | None = None,
    environ: Mapping[str, str] | None = None,
    deadline: timedelta = timedelta(seconds=10),
) -> Client:
    """Connect to the Temporal server, and return the client.

    Its data converter is pydantic's. ``plugins`` are plugins of the SDK; they apply to every worker
    made from this client as well. Raises ``ConnectionSettingsError`` for invalid settings,
    ``ServerUnreachableError`` when no server answers within ``deadline``, and
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
        reason = f"no answer within {deadline.total_seconds():g} s"
        raise ServerUnreachableError(address, reason) from error
    except ValueError as error:  # settings that the SDK refuses, such as a host that can't exist
        raise ConnectionSettingsError(f"settings of the connection: {error}") from error
    except RuntimeError as error:  # the SDK's only error for a connection that fails
        raise ServerUnreachableError(address, _reason(str(error), config)) from error


async def _check_namespace(client: Client, address: str) -> None:
    """Raise NamespaceNotFoundError: some calls report an unknown namespace as a missing workflow.

    Any other error, such as a missing permission, is ignored here; later calls report it.
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
    ("InvalidContentType", "it does not speak TLS (see --tls)"),
    ("InvalidCertificate", "its certificate is not trusted (see --tls-ca-path, --tls-server-name)"),
    ("PrivateKeyParse", "the key of the client certificate can't be read (see --tls-key-path)"),
    ("CertificateParse", "a certificate can't be read (see --tls-cert-path, --tls-ca-path)"),
    ("KeyMismatch", "certificate and key are not a pair (see --tls-cert-path, --tls-key-path)"),
    ("certificate", "TLS failed (see the --tls flags)"),
    ("Unauthenticated", "authentication failed (see --api-key and the --tls flags)"),
    ("PermissionDenied", "permission denied (see --api-key and --namespace)"),
)

_BROKEN = ("transport error", "Error(Transport", "BrokenPipe", "ConnectionReset", "UnexpectedEof")


def _reason(message: str, config: ClientConnectConfig) -> str:
    """Return a short text for the SDK's error message; an unknown message as it is."""
    known = [reason for sign, reason in _REASONS if sign.lower() in message.lower()]
    if known:
        return known[0]
    if any(sign in message for sign in _BROKEN):
        return f"it broke the connection: {_suspicion(config)}"
    return message


def _suspicion(config: ClientConnectConfig) -> str:
    """Return why a server that is there may break a connection at once. A server that misses a
    client certificate says so after the handshake, and the SDK does not tell what it says."""
    tls = config.get("tls")
    if not tls:
        return "it may want TLS (see --tls)"
    if isinstance(tls, TLSConfig) and tls.client_cert:
        return "it may not accept the client certificate (see --tls-cert-path)"
    return "it may want a client certificate (see --tls-cert-path, --tls-key-path)"


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
