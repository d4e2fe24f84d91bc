"""The connection of a spoke to its hub. Nothing of it comes from the settings of its own server."""

import os
import re
from collections.abc import Mapping, Sequence

from temporalio.client import Client, Plugin
from temporalio.runtime import Runtime

from temporal_plans.client.temporal.connection import (
    Connection,
    ConnectionSettingsError,
    NamespaceNotFoundError,
    ServerUnreachableError,
    connect,
)
from temporal_plans.domain.values.failure import UserFacingError


class HubError(UserFacingError, ConnectionError):
    """The hub can't be reached, or has no such namespace."""


async def connect_to_hub(
    connection: Connection, plugins: Sequence[Plugin], runtime: Runtime | None
) -> Client:
    """Connect to the hub. Raises ConnectionSettingsError and HubError."""
    try:
        environ = _environ(connection)
        return await connect(connection, plugins=plugins, runtime=runtime, environ=environ)
    except ConnectionSettingsError as error:
        raise ConnectionSettingsError(f"the hub: {_with_options(str(error))}") from error
    except NamespaceNotFoundError as error:
        raise HubError(
            f"the hub at {connection.address} has no namespace {error.namespace!r}; choose another"
            " with --hub-namespace, or create it there"
        ) from error
    except ServerUnreachableError as error:
        reason = str(error).partition(f" {error.address}: ")[2].partition(". Start one")[0]
        raise HubError(
            f"no hub answers at {error.address}: {_with_options(reason)}. Check --hub and the other"
            " --hub options"
        ) from error


def _with_options(text: str) -> str:
    """Return a text about a connection with the names that its options have here; certificates are
    given by path only."""
    without = re.sub(r" or --tls-\w+-data", "", text)
    return re.sub(r"--(?=tls|api-key|namespace|profile)", "--hub-", without)


def _environ(connection: Connection) -> Mapping[str, str]:
    """Return the variables that the connection may read: they find a profile that was named, and
    without one the default profile, which is of the own server, is not read."""
    if connection.profile is None:
        return {"TEMPORAL_CONFIG_FILE": os.devnull}
    return {
        name: os.environ[name]
        for name in ("HOME", "XDG_CONFIG_HOME", "TEMPORAL_CONFIG_FILE")
        if name in os.environ
    }
